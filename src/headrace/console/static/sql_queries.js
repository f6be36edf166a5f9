// Queries that run: how they are, their graphs, and how to pause or end them.

import { get } from "./api.js";
import { card, element, number, rate, table } from "./dom.js";
import { graph, scrollGraph } from "./graph.js";
import { identifier, run } from "./sql_run.js";

const KINDS = { STARTING: "warn", RUNNING: "good", PAUSED: "warn", ERROR: "bad", UNRESPONSIVE: "bad" };
const badge = (state) => element("span", { class: `badge ${KINDS[state] ?? ""}` }, state);
const known = (value, shown) => (value === null || value === undefined ? "–" : shown(value));
// Stores of queries are asked by SQL, so a click on one leads nowhere.
const LINKS = { topic: (name) => `#/topics/${encodeURIComponent(name)}` };

export async function queriesPage(page, live, [id], signal) {
  if (id) return queryPage(page, live, id, signal);
  // Somebody presses the button of the mouse right now; what is replaced under it would not be clicked.
  if (page.querySelector("tr.link:active")) return undefined;
  const at = [...page.querySelectorAll("tr.link a.whole")].indexOf(document.activeElement);
  page.replaceChildren(card("Queries", table([
    ["query", (row) => row.id], ["state", (row) => badge(row.state)], ["reads", (row) => row.sources.join(", ")], ["writes", (row) => row.sink],
    ["in", (row) => known(row.rate_in, rate), "number"], ["out", (row) => known(row.rate_out, rate), "number"],
    ["records in", (row) => known(row.records_in, number), "number"], ["waiting", (row) => known(row.waiting, number), "number"],
    ...(live.queries.some((row) => row.restarts) ? [["restarts", (row) => number(row.restarts), "number"]] : []),
    ...(live.queries.some((row) => row.error) ? [["error", (row) => row.error && element("span", { class: "bad" }, row.error)]] : []),
  ], live.queries, "No query runs: CREATE STREAM … AS SELECT starts one.", (row) => `#/queries/${encodeURIComponent(row.id)}`)));
  // The list is drawn anew every second, and the keyboard is to stay where it is.
  if (at >= 0) page.querySelectorAll("tr.link a.whole")[at]?.focus();
  return undefined;
}

async function queryPage(page, live, id, signal) {
  const query = await get(`api/queries/${encodeURIComponent(id)}`, { signal });
  if (page.firstElementChild?.dataset.query !== id) page.replaceChildren(frameOf(page, live, id, query));
  const part = (name) => page.querySelector(`[data-part="${name}"]`);
  part("state").replaceChildren(badge(query.state));
  if (part("error").dataset.said !== (query.error_details ?? "")) {
    part("error").dataset.said = query.error_details ?? "";
    part("error").replaceChildren(...(query.error ? [element("div", { class: "error" }, element("p", {}, query.error), element("details", {}, element("summary", {}, "As the engine says it"), element("pre", {}, query.error_details)))] : []));
  }
  const figure = (label, value) => element("section", { class: "card" }, element("div", { class: "figure" }, value), element("div", { class: "label" }, label));
  part("figures").replaceChildren(
    figure("records in", known(query.rate_in, rate)), figure("records out", known(query.rate_out, rate)), figure("records waiting", known(query.waiting, number)),
    figure("read so far", known(query.records_in, number)), figure("written so far", known(query.records_out, number)), figure("rows of state", known(query.state_rows, number)),
    ...(query.restarts ? [figure("restarts after failures", number(query.restarts))] : []));
  if (part("pause")) part("pause").textContent = query.state === "PAUSED" ? "Resume" : "Pause";
  const before = part("graph").firstElementChild;
  if (before?.matches(":active")) return;
  const at = before && { scrollLeft: before.scrollLeft, scrollTop: before.scrollTop };
  const now = graph(query.topology, query.nodes, LINKS, query.texts);
  part("graph").replaceChildren(now);
  scrollGraph(now, at);
}

// What does not change is made once, so that nobody clicks on a button that is being replaced.
function frameOf(page, live, id, query) {
  const said = element("div", { class: "stack" });
  const control = (action) => run(`${action} ${identifier(id)};`, {}, said, undefined).then(({ error }) => {
    if (error) said.replaceChildren(element("p", { class: "error" }, error.message));
    else said.replaceChildren();
    return !error;
  });
  const pause = element("button", { type: "button", "data-part": "pause", onclick: async () => {
    const action = pause.textContent === "Pause" ? "PAUSE" : "RESUME";
    if (await confirmed(`${action} ${id}?`, action === "PAUSE" ? "Records wait in its topics until it is resumed." : "It goes on where it was.", pause.textContent)) control(action);
  } }, "Pause");
  const terminate = element("button", { type: "button", class: "danger", onclick: async () => {
    if (await confirmed(`TERMINATE ${id}?`, `It ends for good, and its state is deleted. ${query.sink} and its topic stay as they are.`, "Terminate") && await control("TERMINATE")) location.hash = "#/queries";
  } }, "Terminate");
  return element("div", { class: "stack", "data-query": id },
    element("h1", {}, element("a", { href: "#/queries" }, "Queries"), ` / ${id} `, element("span", { "data-part": "state" })),
    element("div", { "data-part": "error" }),
    card(null, element("pre", { class: "statement" }, query.statement), live.server.accepts_statements && element("div", { class: "row tools" }, pause, terminate), said),
    element("div", { class: "cards", "data-part": "figures" }),
    element("div", { "data-part": "graph" }),
    card(null, element("details", {}, element("summary", {}, "Topology as text"), element("pre", {}, query.description))));
}

function confirmed(question, consequence, verb) {
  const button = (text, answer, attributes) => element("button", { type: "button", onclick: () => dialog.close(answer), ...attributes }, text);
  const dialog = element("dialog", { "aria-label": question }, element("h2", {}, question), element("p", {}, consequence),
    element("div", { class: "row" }, button("Cancel", "no", { autofocus: true }), button(verb, "yes", { class: "primary" })));
  document.body.append(dialog);
  return new Promise((decide) => {
    dialog.addEventListener("close", () => { decide(dialog.returnValue === "yes"); dialog.remove(); });
    dialog.showModal();
  });
}
