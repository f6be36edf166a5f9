// Topics: what is there, and a browser of records by offset or time.

import { get, Refused } from "./api.js";
import { card, element, number, table, time, valueText } from "./dom.js";

const SERDES = ["auto", "string", "json", "integer", "long", "double", "bytes"];

export async function topicsPage(page, live, [name], signal, query) {
  const { topics } = await get("api/topics");
  if (!name) {
    page.replaceChildren(card("Topics", table([
      ["name", (row) => row.name], ["role", (row) => row.role], ["partitions", (row) => row.partitions, "number"],
      ["records", (row) => number(row.records), "number"],
    ], topics, "The log has no topics.", (row) => `#/topics/${encodeURIComponent(row.name)}`)));
    return;
  }
  const topic = topics.find((one) => one.name === name);
  if (!topic) throw new Refused(`There is no topic '${name}'.`, 404);
  const choice = (id, values, chosen) => element("select", { id, "aria-label": id.replace("-", " ") }, values.map((value) => element("option", { value, selected: String(value) === String(chosen) }, value)));
  const partition = choice("partition", [...Array(topic.partitions).keys()], query.get("partition") ?? 0);
  const keySerde = choice("key-serde", SERDES, "auto"), valueSerde = choice("value-serde", SERDES, "auto");
  const offset = element("input", { type: "text", id: "offset", placeholder: "offset, or a time as 2026-01-31 12:00", value: query.get("offset") ?? "", "aria-label": "offset or time" });
  const answer = element("div", { id: "records" });
  let shown = null;
  const show = async (from) => {
    const asked = new URLSearchParams({ partition: partition.value, limit: 50, key_serde: keySerde.value, value_serde: valueSerde.value, ...from });
    try {
      shown = await get(`api/topics/${encodeURIComponent(name)}/records?${asked}`, { signal });
      answer.replaceChildren(
        element("p", { class: "soft" }, `Offsets ${number(shown.begin)} to ${number(shown.end)}; shown from ${number(shown.records[0]?.offset ?? shown.next)}.`),
        table([["offset", (row) => row.offset, "number"], ["time", (row) => time(row.timestamp_ms), "time"],
          ["key", (row) => (row.key_error ? element("span", { class: "bad" }, row.key_error) : valueText(row.key))],
          ["value", (row) => (row.value_error ? element("span", { class: "bad" }, row.value_error) : valueText(row.value))],
          ["headers", (row) => (row.headers.length ? valueText(Object.fromEntries(row.headers)) : "")]], shown.records, "No records here."));
    } catch (error) {
      answer.replaceChildren(element("p", { class: "error" }, error.message));
    }
  };
  const wanted = () => {
    const text = offset.value.trim();
    if (!text) return {};
    if (/^\d+$/.test(text)) return { offset: text };
    const parsed = Date.parse(text.replace(" ", "T") + (/[zZ]|[+-]\d\d:?\d\d$/.test(text) ? "" : "Z"));
    return Number.isNaN(parsed) ? { offset: text } : { time_ms: parsed };
  };
  const submit = (event) => { event.preventDefault(); show(wanted()); };
  page.replaceChildren(element("div", { class: "stack" },
    element("h1", {}, element("a", { href: "#/topics" }, "Topics"), ` / ${name} `, element("span", { class: "badge" }, topic.role)),
    card(null, element("form", { class: "row", onsubmit: submit, onchange: submit }, element("label", {}, "partition ", partition), offset,
      element("label", {}, "key ", keySerde), element("label", {}, "value ", valueSerde),
      element("button", { class: "primary", type: "submit" }, "Show"),
      element("button", { type: "button", onclick: () => shown && show({ offset: Math.max(shown.begin, (shown.records[0]?.offset ?? shown.end) - 50) }) }, "← older"),
      element("button", { type: "button", onclick: () => shown && show({ offset: shown.next }) }, "newer →"),
      element("button", { type: "button", onclick: () => show({}) }, "newest"))),
    card("Records", answer)));
  await show(wanted());
}
