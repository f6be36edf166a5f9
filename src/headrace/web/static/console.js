// The frame: pages by the address behind '#', and a stream of what changes every second.

import { follow, get } from "./api.js";
import { ago, card, element } from "./dom.js";
import { graph } from "./graph.js";
import { lettersPage } from "./letters.js";
import { batchesPage, overview } from "./overview.js";
import { storesPage } from "./stores.js";
import { topicsPage } from "./topics.js";

const page = document.getElementById("page");
const live = { application: null, nodes: {} };
let topology = null;

async function topologyPage() {
  topology ??= await get("../topology");
  const before = page.querySelector(".graph");
  const at = before ? [before.scrollLeft, before.scrollTop] : null;
  page.replaceChildren(element("h1", {}, "Topology"), graph(topology, live.nodes));
  const now = page.querySelector(".graph");
  now.scrollTo(...(at ?? [(now.scrollWidth - now.clientWidth) / 2, 0]));
}

// A page that is repeated is drawn anew with every beat; the others keep what was typed into them.
const PAGES = [
  ["overview", "Overview", overview, true],
  ["topology", "Topology", topologyPage, true],
  ["stores", "Stores", storesPage, false],
  ["topics", "Topics", topicsPage, false],
  ["letters", "Letters", lettersPage, false],
  ["batches", "Batches", batchesPage, true],
];

let leaving = new AbortController();
let drawing = false;

async function show(fresh) {
  const [path, search] = location.hash.slice(2).split("?");
  const [name, ...rest] = (path || "overview").split("/").map(decodeURIComponent);
  const found = PAGES.find(([id]) => id === name) ?? PAGES[0];
  if (!fresh && (!found[3] || drawing)) return;
  if (fresh) { leaving.abort(); leaving = new AbortController(); }
  document.getElementById("navigation").replaceChildren(...PAGES.map(([id, title]) => element("a", { href: `#/${id}`, "aria-current": id === found[0] ? "page" : undefined }, title)));
  if (!live.application) return;
  drawing = true;
  try {
    await found[2](page, live, rest, leaving.signal, new URLSearchParams(search));
  } catch (error) {
    if (error.name !== "AbortError") page.replaceChildren(card("This did not work", element("p", { class: "error" }, error.message)));
  } finally {
    drawing = false;
  }
}

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

const KIND_OF_STALL = { failing: "bad", stopped: "bad", "waiting-for-broker": "bad", "no-input": "calm", paused: "calm" };

function banner(text, kind) {
  const stall = document.getElementById("stall");
  stall.hidden = !text;
  stall.textContent = text || "";
  stall.className = `banner ${kind ?? ""}`;
}

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

document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("headrace-theme", root.dataset.theme);
});
const kept = localStorage.getItem("headrace-theme");
if (kept) document.documentElement.dataset.theme = kept;
addEventListener("hashchange", () => show(true));
show(true);
listen();
