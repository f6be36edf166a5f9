// The console of an application: its pages, and a stream of what changes every second.

import { follow, get } from "./api.js";
import { ago, element } from "./dom.js";
import { banner, pages } from "./frame.js";
import { graph, scrollGraph } from "./graph.js";
import { deadLettersPage } from "./dead_letter_queue.js";
import { batchesPage, overview } from "./overview.js";
import { storesPage } from "./stores.js";
import { topicsPage } from "./topics.js";

const live = { application: null, nodes: {} };
let topology = null;

async function topologyPage(page) {
  topology ??= await get("../topology");
  const before = page.querySelector(".graph");
  const at = before && { scrollLeft: before.scrollLeft, scrollTop: before.scrollTop };
  const now = graph(topology, live.nodes);
  page.replaceChildren(element("h1", {}, "Topology"), now);
  scrollGraph(now, at);
}

const show = pages([
  ["overview", "Overview", overview, true],
  ["topology", "Topology", topologyPage, true],
  ["stores", "Stores", storesPage, false, 1],
  ["topics", "Topics", topicsPage, false, 1],
  ["dead-letters", "Dead letters", deadLettersPage, false],
  ["batches", "Batches", batchesPage, true],
], live, () => live.application !== null);

const KINDS = { RUNNING: "good", REBALANCING: "warn", CREATED: "", PENDING_SHUTDOWN: "warn", NOT_RUNNING: "", PENDING_ERROR: "bad", ERROR: "bad" };

function header() {
  const { application } = live;
  document.title = `${application.application_id} · Headrace`;
  document.getElementById("application").textContent = application.application_id;
  const state = document.getElementById("state");
  state.textContent = application.paused ? "PAUSED" : application.state;
  state.className = `badge ${KINDS[application.state] ?? ""}`;
  const { stall } = application;
  banner(stall && `${stall.text} (for ${ago(application.now_ms - stall.since_ms)})`, KIND_OF_STALL[stall?.reason]);
}

const KIND_OF_STALL = { failing: "bad", stopped: "bad", "waiting-for-broker": "bad", "no-input": "calm", paused: "calm", restoring: "calm" };

async function listen() {
  for (;;) {
    try {
      await follow("api/live", (name, data) => {
        const first = live.application === null;
        Object.assign(live, data);
        header();
        show(first);
      });
    } catch (error) {
      banner(`The application does not answer: ${error.message}`, "bad");
    }
    await new Promise((wake) => { setTimeout(wake, 1000); });
  }
}

listen();
