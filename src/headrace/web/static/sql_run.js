// Carries out statements, and shows what comes while it comes.

import { send } from "./api.js";
import { element, number } from "./dom.js";
import { answer } from "./sql_answers.js";

// So many rows are shown: the first of a query that ends, the last of one that goes on.
const SHOWN = 500;
const NUMBERS = /^(INTEGER|BIGINT|DOUBLE|DECIMAL)/;

// A name as it is written in a statement.
export const identifier = (name) => `\`${name.replaceAll("`", "``")}\``;

export async function run(text, session, place, signal) {
  const found = { session: null, error: null };
  let shown = null;
  place.replaceChildren();
  const happened = {
    statement(one) { shown?.flush(); shown = makeResult(one); place.append(shown.element); },
    entity(one) { shown.add(answer(one)); },
    columns(one, event) { shown.begin(one, event.push); },
    row(one, event) { shown.row(one, event.tombstone); },
    line(one) { shown.line(one); },
    done(one) { shown.end(one); },
    error(one) { found.error = one; shown?.fail(); },
    session(one) { found.session = one; },
  };
  try {
    await send("api/run", { sql: text, ...session }, (events) => {
      for (const event of events) {
        const kind = Object.keys(happened).find((name) => name in event);
        if (kind) happened[kind](event[kind], event);
      }
      shown?.flush();
    }, signal);
  } catch (error) {
    if (error.name === "AbortError") shown?.end("stopped");
    else found.error = { message: error.message };
    shown?.flush();
  }
  return found;
}

function makeResult({ text, index, of }) {
  const status = element("span", { class: "soft said" }, "running …");
  const body = element("div", { class: "stack" });
  const title = element("code", { class: "asked", title: text }, text.replace(/\s+/g, " "));
  const whole = element("section", { class: "card result" }, element("div", { class: "row head" }, of > 1 && element("span", { class: "soft" }, `${index + 1}/${of}`), title, status), body);
  let columns = [], isPush = false, rows = null, lines = null, count = 0, waiting = [], ended = null;

  const says = () => {
    const what = lines ? "record" : "row";
    const many = rows || lines ? `${number(count)} ${what}${count === 1 ? "" : "s"}` : "";
    const part = count > SHOWN ? (isPush || lines ? `the last ${SHOWN} are shown, the newest first` : `the first ${SHOWN} are shown`) : isPush && count ? "the newest first" : "";
    status.textContent = [many, part, ended ?? (isPush ? "waiting for more …" : "running …")].filter(Boolean).join(" · ");
  };
  const drawRow = ([cells, isGone]) => element("tr", { class: isGone ? "gone" : undefined, title: isGone ? "This row is gone" : undefined }, cells.map((cell, at) => element("td", { class: NUMBERS.test(columns[at].type) ? "number" : undefined, "data-title": columns[at].name },
    cell === null ? element("span", { class: "soft" }, "null") : element("pre", {}, cell))));

  return {
    element: whole,
    add(child) { body.append(child); },
    begin(found, push) {
      columns = found;
      isPush = push;
      rows = element("tbody", {});
      body.append(element("div", { class: "scroll tall" }, element("table", {}, element("thead", {}, element("tr", {}, columns.map((column) => element("th", { scope: "col", title: column.type, class: NUMBERS.test(column.type) ? "number" : undefined }, column.name)))), rows)));
    },
    row(cells, isGone) { count += 1; waiting.push([cells, isGone]); if (isPush && waiting.length > SHOWN) waiting.shift(); },
    line(text_) {
      lines ??= body.appendChild(element("pre", { class: "scroll tall printed" }));
      count += 1;
      waiting.push(text_);
      if (waiting.length > SHOWN) waiting.shift();
    },
    end(message) { ended = message ?? "done"; },
    fail() { ended = "failed"; },
    // Draws what has come since: often many rows at once.
    flush() {
      if (lines) {
        lines.prepend(...waiting.reverse().map((one) => element("span", {}, `${one}\n`)));
        while (lines.childElementCount > SHOWN) lines.lastElementChild.remove();
      } else if (rows && isPush) {
        rows.prepend(...waiting.reverse().map(drawRow));
        while (rows.childElementCount > SHOWN) rows.lastElementChild.remove();
      } else if (rows) {
        rows.append(...waiting.slice(0, Math.max(0, SHOWN - rows.childElementCount)).map(drawRow));
      }
      waiting = [];
      says();
    },
  };
}
