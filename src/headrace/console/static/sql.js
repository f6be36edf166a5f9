// The console of a server of SQL: its pages, and a stream of what changes every second.

import { follow } from "./api.js";
import { banner, pages } from "./frame.js";
import { queriesPage } from "./sql_queries.js";
import { refreshSources, sqlPage } from "./sql_page.js";
import { topicsPage } from "./topics.js";

const live = { server: null, queries: [] };

const show = pages([
  ["sql", "SQL", sqlPage, false],
  ["queries", "Queries", queriesPage, true, 1],
  ["topics", "Topics", topicsPage, false, 1],
], live, () => live.server !== null);

function header() {
  const { server, queries } = live;
  document.title = `SQL at ${server.service_id} · Headrace`;
  document.getElementById("application").textContent = server.service_id;
  const failing = queries.filter((query) => query.error);
  const state = document.getElementById("state");
  state.textContent = `${queries.length} ${queries.length === 1 ? "query" : "queries"}`;
  state.className = `badge ${failing.length ? "bad" : queries.length ? "good" : ""}`;
  if (!server.following) banner("The server does not follow its command topic; its log says why.", "bad");
  else if (!failing.length) banner("");
  else if (failing.length === 1) banner(`${failing[0].id} fails: ${failing[0].error}`, "bad", { leads: [`#/queries/${encodeURIComponent(failing[0].id)}`, "look at it"], dismissible: true });
  else banner(`${failing.length} queries fail; ${failing[0].id}: ${failing[0].error}`, "bad", { leads: ["#/queries", "look at them"], dismissible: true });
}

async function listen() {
  for (;;) {
    try {
      await follow("api/live", (name, data) => {
        const first = live.server === null;
        const changed = data.server.position !== live.server?.position;
        Object.assign(live, data);
        header();
        show(first);
        if (changed) refreshSources();
      });
    } catch (error) {
      banner(`The server does not answer: ${error.message}`, "bad");
    }
    await new Promise((wake) => { setTimeout(wake, 1000); });
  }
}

listen();
