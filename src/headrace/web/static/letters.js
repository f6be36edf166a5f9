// Records that could not be processed, and records that came too late, each with its reason.

import { get } from "./api.js";
import { card, element, table, time, valueText } from "./dom.js";

export async function lettersPage(page) {
  const { letters, topics } = await get("api/letters?limit=200");
  const link = (row) => (row.topic === null ? "" : element("a", { href: `#/topics/${encodeURIComponent(row.topic)}?partition=${row.partition}&offset=${row.offset}` }, `${row.topic} ${row.partition} @ ${row.offset}`));
  page.replaceChildren(card("Dead and late records",
    element("p", { class: "soft" }, topics.length ? `Read from ${topics.join(", ")}.` : "No topic for such records is configured: set errors.dead.letter.queue.topic.name to keep them."),
    table([["when", (row) => time(row.timestamp_ms), "time"], ["kind", (row) => element("span", { class: row.kind === "dead" ? "bad" : "warn" }, row.kind)], ["reason", (row) => (row.stacktrace ? element("details", {}, element("summary", {}, row.reason), element("pre", {}, row.stacktrace)) : element("pre", {}, row.reason))],
      ...(letters.some((row) => row.node) ? [["node", (row) => row.node ?? ""]] : []), ["record", link], ["key", (row) => valueText(row.key)], ["value", (row) => valueText(row.value)]], letters, "None.")));
}
