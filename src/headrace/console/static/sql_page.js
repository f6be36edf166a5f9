// The SQL page: the editor, what came of its statements, and what there is to ask for.

import { get } from "./api.js";
import { card, element, number } from "./dom.js";
import { editor, remember } from "./sql_editor.js";
import { EXAMPLES, PREFIX } from "./sql_examples.js";
import { identifier, run } from "./sql_run.js";

const EARLIEST = { "auto.offset.reset": "earliest" };

// Made once: what was typed and what came of it is there again after a look at another page.
let workbench = null;

export async function sqlPage(page, live) {
  workbench ??= makeWorkbench(live);
  page.replaceChildren(workbench.element);
  // On a phone that would bring up the keyboard.
  if (matchMedia("(pointer: fine)").matches) workbench.focus();
}

export const refreshSources = () => workbench?.refresh();

function makeWorkbench(live) {
  const results = element("div", { class: "stack", id: "results", "aria-live": "polite" });
  const problem = element("button", { type: "button", id: "problem", class: "error", hidden: true });
  const stop = element("button", { type: "button", id: "stop", hidden: true, onclick: () => running?.abort() }, "Stop");
  const beginning = element("input", { type: "checkbox", id: "beginning" });
  const past = element("select", { id: "history", "aria-label": "what ran before", onchange: () => { if (past.value) { typed.put(past.value); past.selectedIndex = 0; typed.focus(); } } });
  const set = element("p", { class: "soft", id: "session", hidden: true });
  const sources = element("div", { class: "stack", id: "sources" });
  let session = { settings: {}, variables: {} }, running = null;
  const typed = editor(() => runTyped());

  async function start(text, isTyped, wanted = {}) {
    running?.abort();
    const mine = running = new AbortController();
    problem.hidden = true;
    typed.begin();
    stop.hidden = false;
    const settings = { ...(beginning.checked ? EARLIEST : {}), ...session.settings, ...wanted };
    const ended = await run(text, { settings, variables: session.variables }, results, mine.signal, (query) => start(`${query};`, false, EARLIEST));
    if (running !== mine) return;
    running = null;
    stop.hidden = true;
    if (ended.session && wanted !== EARLIEST) keep(ended.session);
    if (ended.error) complain(ended.error, isTyped);
    refresh();
  }

  // What the server has is made by others or by these examples; they are offered as long as nobody else has made anything.
  function offer(sources_) {
    const isEmpty = sources_.every(({ name }) => name.startsWith(PREFIX)) && live.server.accepts_statements;
    const isShown = results.firstElementChild?.id === "examples";
    if (isShown === isEmpty || (results.firstElementChild && !isShown)) return;
    results.replaceChildren(...(isEmpty ? [element("section", { id: "examples", class: "stack" },
      element("p", { class: "soft" }, "Nothing has run here yet. Type a statement, or try an example; what it makes is called example_ and something."),
      element("div", { class: "columns" }, EXAMPLES.map(({ title, says, before, shown }) => card(title, element("p", {}, says), element("pre", {}, shown),
        element("button", { type: "button", class: "primary", onclick: () => { typed.put(`${before}\n${shown}`); beginning.checked = true; runTyped(); } }, "Try it")))))] : []));
  }

  function runTyped() {
    const text = typed.chosen();
    if (!text.trim()) return;
    remember(text.trim());
    listHistory();
    start(text, true);
  }

  function complain(error, isTyped) {
    const isPlaced = isTyped && error.line;
    problem.replaceChildren(element("pre", {}, isPlaced && !error.message.startsWith("line ") ? `line ${error.line}:${error.column}: ${error.message}` : error.message));
    problem.hidden = false;
    const mark = (leads) => isPlaced && typed.mark(error.line, error.column, { leads });
    problem.onclick = () => mark(true);
    mark(false);
  }

  // What SET and DEFINE have said lasts as long as the page, as at a prompt.
  function keep(found) {
    session = found;
    if (beginning.checked && session.settings["auto.offset.reset"] === "earliest") delete session.settings["auto.offset.reset"];
    const said = [...Object.entries(session.settings), ...Object.entries(session.variables)].map(([name, value]) => `${name} = ${value}`);
    set.hidden = !said.length;
    set.replaceChildren(`Set in this page: ${said.join(", ")} `, element("button", { type: "button", onclick: () => keep({ settings: {}, variables: {} }) }, "Forget"));
  }

  function listHistory() {
    past.replaceChildren(element("option", { value: "" }, "History"), ...typed.history().map((text) => element("option", { value: text }, text.replace(/\s+/g, " ").slice(0, 80))));
  }

  async function refresh() {
    try {
      const { streams, tables, topics } = await get("api/catalog");
      offer([...streams, ...tables]);
      const ask = (text) => () => start(text, false);
      const named = (title, rows, leads, note) => element("section", {}, element("h2", {}, title),
        rows.length ? element("ul", { class: "names" }, rows.map((row) => element("li", {}, leads(row)))) : element("p", { class: "soft" }, note));
      const described = (row) => element("button", { type: "button", class: "name", title: `DESCRIBE ${row.name}`, onclick: ask(`DESCRIBE ${identifier(row.name)} EXTENDED;`) }, row.name);
      sources.replaceChildren(
        named("Streams", streams, described, "None yet: CREATE STREAM."), named("Tables", tables, described, "None yet: CREATE TABLE."),
        named("Topics", topics, (row) => element("a", { class: "name", href: `#/topics/${encodeURIComponent(row.name)}`, title: `${number(row.partitions)} partitions` }, row.name), "The log has none."));
    } catch (error) {
      sources.replaceChildren(element("p", { class: "error" }, error.message));
    }
  }

  listHistory();
  refresh();
  return {
    refresh,
    focus: () => typed.focus(),
    element: element("div", { class: "workbench" },
      element("div", { class: "stack work" },
        card(null, typed.element, problem,
          element("div", { class: "row tools" }, element("button", { type: "button", class: "primary", id: "run", title: "Ctrl+Enter", onclick: runTyped }, "Run"), stop,
            element("label", { class: "row" }, beginning, "queries read from the beginning"), past), set,
          live.server.accepts_statements ? null : element("p", { class: "soft" }, "This server runs the statements of a file and takes no others; queries can be read here.")),
        results),
      card(null, sources)),
  };
}
