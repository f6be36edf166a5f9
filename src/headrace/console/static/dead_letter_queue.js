// Records that could not be processed, and records that came too late, each with its reason.

import { get } from "./api.js";
import { card, element, table, time, valueText } from "./dom.js";

const link = (row) => (row.topic === null || row.offset === null || row.offset < 0 ? "" : element("a", { href: `#/topics/${encodeURIComponent(row.topic)}?partition=${row.partition}&offset=${row.offset}` }, `${row.topic} ${row.partition} @ ${row.offset}`));

function dead({ records, topics }) {
  const reason = (row) => (row.stacktrace ? element("details", {}, element("summary", {}, row.reason), element("pre", {}, row.stacktrace)) : element("pre", {}, row.reason));
  return card("Dead letters",
    element("p", { class: "soft" }, topics.length ? `Read from ${topics.join(", ")}.` : "No topic for such records is configured: set errors.dead.letter.queue.topic.name to keep them."),
    table([["when", (row) => time(row.timestamp_ms), "time"], ["reason", reason],
      ...(records.some((row) => row.node) ? [["node", (row) => row.node ?? ""]] : []), ...(topics.length > 1 ? [["kept in", (row) => row.dead_letter_topic]] : []),
      ["record", link], ["key", (row) => valueText(row.key)], ["value", (row) => valueText(row.value)]], records, "None."));
}

function late({ records, nodes }) {
  const span = (row) => (row.window === null ? "" : `${time(row.window[0])} to ${time(row.window[1])}`);
  const counted = nodes.map((row) => `${row.node}: ${row.total.toLocaleString()}`).join(", ");
  return card("Late records",
    element("p", { class: "soft" }, nodes.length ? `Dropped since the start: ${counted}. Below are the last ones that tasks have reported, a few of each batch.` : "Records that come after their window has closed are dropped."),
    table([["record's time", (row) => time(row.timestamp_ms), "time"], ["node", (row) => row.node], ["window", span], ["closed at", (row) => time(row.close_time_ms), "time"],
      ["record", link], ["key", (row) => valueText(row.key)], ["value", (row) => valueText(row.value)]], records, "None."));
}

export async function deadLettersPage(page) {
  const [found, tooLate] = await Promise.all([get("api/dead-letters?limit=200"), get("api/late?limit=200")]);
  page.replaceChildren(element("div", { class: "stack" }, dead(found), late(tooLate)));
}
