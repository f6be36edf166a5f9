// Stores: look up a key, scan a range, follow changes.

import { follow, get, Refused } from "./api.js";
import { card, element, number, table, time, valueText } from "./dom.js";

const path = (store) => `../stores/${encodeURIComponent(store)}`;

export async function storesPage(page, live, [name], signal) {
  const { stores } = await get("../stores");
  if (!name) {
    page.replaceChildren(card("Stores", table([
      ["name", (row) => row.name], ["kind", (row) => row.kind], ["rows", (row) => (row.rows === null ? "–" : number(row.rows)), "number"],
      ["partitions", (row) => row.partitions, "number"], ["behind", (row) => number(row.lag), "number"],
    ], stores, "This application has no store that can be asked: name one with Materialized(\"name\").", (row) => `#/stores/${encodeURIComponent(row.name)}`)));
    return;
  }
  const store = stores.find((one) => one.name === name);
  if (!store) throw new Refused(`There is no store '${name}' that can be asked.`, 404);
  const answer = element("div", { id: "answer" });
  const key = element("input", { type: "text", id: "key", placeholder: "key", "aria-label": "key", autocomplete: "off" });
  const show = async (request) => {
    try {
      answer.replaceChildren(rowsTable(await get(request, { signal })));
    } catch (error) {
      answer.replaceChildren(element("p", { class: "error" }, error.message));
    }
  };
  const lookUp = (event) => { event.preventDefault(); show(`${path(name)}/keys/${encodeURIComponent(key.value)}`); };
  const changes = element("tbody", {});
  const tail = element("div", { class: "tail scroll" }, element("table", { class: "stacked" }, element("thead", {}, element("tr", {}, ["time", "key", "value"].map((title) => element("th", { scope: "col" }, title)))), changes));
  const say = element("p", { class: "soft" }, "Waiting for changes …");
  page.replaceChildren(element("div", { class: "stack" },
    element("h1", {}, element("a", { href: "#/stores" }, "Stores"), ` / ${name} `, element("span", { class: "badge" }, store.kind)),
    card("Look up", element("form", { class: "row", onsubmit: lookUp }, key,
      element("button", { class: "primary", type: "submit" }, "Find"),
      element("button", { type: "button", onclick: () => show(`${path(name)}/range?limit=100`) }, "First 100"),
      element("button", { type: "button", onclick: () => show(`${path(name)}/range?limit=100&order=descending`) }, "Last 100"),
      element("button", { type: "button", onclick: () => show(`${path(name)}/range?limit=100&prefix=${encodeURIComponent(key.value)}`) }, "Prefix")), answer),
    card("Changes", say, tail)));
  follow(`${path(name)}/changes`, (event, change) => {
    say.hidden = true;
    changes.prepend(element("tr", {}, element("td", { class: "soft", "data-title": "time" }, time(change.timestamp_ms)), element("td", { "data-title": "key" }, valueText(change.key)), element("td", { "data-title": "value" }, valueText(change.value))));
    while (changes.childElementCount > 200) changes.lastElementChild.remove();
  }, signal).catch((error) => { if (error.name !== "AbortError") say.replaceChildren(error.message); });
}

function rowsTable(found) {
  const rows = found.rows ?? [found];
  const windowed = rows.some((row) => row.window);
  return table([
    ["key", (row) => valueText(row.key)],
    ...(windowed ? [["window", (row) => (row.window ? `${time(row.window.start_ms)} – ${time(row.window.end_ms)}` : "")]] : []),
    ["value", (row) => valueText(row.value)], ["time", (row) => time(row.timestamp_ms), "time"], ["partition", (row) => row.partition ?? "", "number"],
  ], rows, "Nothing there.");
}
