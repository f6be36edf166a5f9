// How the application is: figures, rates, lag, batches, last errors.

import { get } from "./api.js";
import { lines, stackedBars } from "./charts.js";
import { ago, card, element, number, rate, table, time } from "./dom.js";

const figure = (label, value, kind = "") => element("section", { class: "card" },
  element("div", { class: `figure ${kind}` }, value), element("div", { class: "label" }, label));

// Over some seconds, because a micro-batch brings its records all at once.
const SPAN = 5;
function perSecond(points, name) {
  return points.slice(1).map((point, index) => {
    const before = points[Math.max(0, index + 1 - SPAN)];
    const seconds = (point.at_ms - before.at_ms) / 1000;
    return [point.at_ms, seconds > 0 ? Math.max(0, point[name] - before[name]) / seconds : 0];
  });
}

export async function overview(page, live) {
  const history = await get("api/history");
  const application = live.application;
  const phases = [...new Set(history.batches.flatMap((batch) => Object.keys(batch.phases)))].filter((name) => name !== "wait");
  const batches = history.batches.slice(-80);
  page.replaceChildren(element("div", { class: "stack" },
    element("div", { class: "cards" },
      figure("records in", rate(application.rate_in)), figure("records out", rate(application.rate_out)),
      figure("records waiting", number(application.lag), application.lag > 0 ? "" : "good"),
      figure("rows of state", number(application.state_rows)),
      figure("late", number(application.late_total), application.late_total ? "warn" : ""),
      figure("dead letters", number(application.dead_total), application.dead_total ? "bad" : ""),
      figure("running for", application.started_ms ? ago(application.now_ms - application.started_ms) : "–")),
    element("div", { class: "columns" },
      card("Records per second", lines([{ name: "in", points: perSecond(history.points, "records_in") }, { name: "out", points: perSecond(history.points, "records_out") }], "/s")),
      card("Records waiting, by partition", lines(history.lags.slice(0, 6).map((one) => ({ name: `${one.topic} ${one.partition}`, points: one.points })))),
      card("Batches: milliseconds by phase", stackedBars(batches.map((batch) => phases.map((phase) => batch.phases[phase] ?? 0)), phases,
        (at) => `batch ${batches[at].batch_id}: ${number(batches[at].records_in)} records in ${number(batches[at].duration_ms)} ms`)),
      card("Last errors", table([["when", (row) => time(row.at_ms), "time"], ["what", (row) => element("pre", {}, row.message)]], application.failures, "None.")))));
}

export async function batchesPage(page) {
  const history = await get("api/history");
  const rows = [...history.batches].reverse();
  page.replaceChildren(card("Batches", table([
    ["batch", (row) => row.batch_id, "number"], ["at", (row) => time(row.at_ms), "time"], ["in", (row) => number(row.records_in), "number"],
    ["out", (row) => number(row.records_out), "number"], ["ms", (row) => number(row.duration_ms), "number"],
    ["phases", (row) => Object.entries(row.phases).map(([name, value]) => `${name} ${number(value)}`).join(" · ")],
  ], rows, "No batch yet.")));
}
