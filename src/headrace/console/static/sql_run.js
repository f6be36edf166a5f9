// Carries out statements, and shows what comes while it comes.

import { send } from "./api.js";
import { element, number } from "./dom.js";
import { answer } from "./sql_answers.js";

// So many rows are shown: the first of a query that ends, the last of one that goes on.
const SHOWN = 500;
const joinedNames = (names) => names.join(names.length > 2 ? ", " : " and ");
const NUMBERS = /^(INTEGER|BIGINT|DOUBLE|DECIMAL)/;

// A name as it is written in a statement.
export const identifier = (name) => `\`${name.replaceAll("`", "``")}\``;

// A script of more statements than these folds those that have nothing to show but that they succeeded.
const UNFOLDED = 4;

// Carries out a text. `onBeginning` is called with a push query that is to be read from the beginning instead.
export async function run(text, session, place, signal, onBeginning) {
  const found = { session: null, error: null };
  let shown = null;
  place.replaceChildren();
  const happened = {
    statement(one) { shown?.flush(); shown = makeResult(one, onBeginning); place.append(shown.element); },
    entity(one) { shown.add(answer(one), one); },
    columns(one, event) { shown.begin(one, event); },
    print(one, event) { shown.print(one, event); },
    row(one, event) { shown.row(one, event.tombstone); },
    line(one) { shown.line(one); },
    done(one) { shown.end(one); if (shown.isFoldable()) { shown.flush(); fold(place, shown); } },
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
    else { found.error = { message: error.message }; shown?.fail(); }
    shown?.flush();
  }
  return found;
}

// Puts a result to those before it that have succeeded.
function fold(place, { element: result, of }) {
  const before = result.previousElementSibling;
  const folded = before?.matches("details.folded") ? before : element("details", { class: "card folded" }, element("summary", {}), element("div", { class: "stack" }));
  result.before(folded);
  folded.lastElementChild.append(result);
  const all = folded.lastElementChild.children;
  const first = Number(all[0].dataset.number), last = Number(all[all.length - 1].dataset.number);
  folded.firstElementChild.textContent = first === last ? `Statement ${number(first)} of ${number(of)} succeeded` : `Statements ${number(first)} to ${number(last)} of ${number(of)} succeeded`;
}

function makeResult({ text, index, of }, onBeginning) {
  const status = element("span", { class: "soft said" }, "running …");
  const body = element("div", { class: "stack" });
  const title = element("code", { class: "asked", title: text }, text.replace(/\s+/g, " "));
  const whole = element("section", { class: "card result", "data-number": index + 1 }, element("div", { class: "row head" }, of > 1 && element("span", { class: "soft" }, `${index + 1}/${of}`), title, status), body);
  let columns = [], isPush = false, rows = null, lines = null, count = 0, waiting = [], ended = null, isPlain = true, sayReads = () => {};

  // Where a query reads that goes on: without it an empty table is a riddle.
  const reading = (what, isFromBeginning, earlier) => {
    const line = element("p", { class: "soft reads" });
    sayReads = () => {
      const from = `${what} from ${isFromBeginning ? "the beginning" : "now on"}`;
      if (ended !== null) line.replaceChildren(`Has read ${from}.`);
      else line.replaceChildren(`Reads ${from}, and waits for ${count ? "more" : lines || !rows ? "records" : "rows"}. `, ...(isFromBeginning ? [] : [earlier]));
    };
    body.append(line);
  };
  const says = () => {
    sayReads();
    const what = rows ? "row" : "record";
    const many = rows || lines ? `${number(count)} ${what}${count === 1 ? "" : "s"}` : "";
    const part = count > SHOWN ? (isPush || lines ? `the last ${SHOWN} are shown, the newest first` : `the first ${SHOWN} are shown`) : isPush && count ? "the newest first" : "";
    status.textContent = [many, part, ended ?? (isPush ? `waiting for ${count ? "more" : `${what}s`} …` : "running …")].filter(Boolean).join(" · ");
  };
  const drawRow = ([cells, isGone]) => element("tr", { class: isGone ? "gone" : undefined, title: isGone ? "This row is gone" : undefined }, cells.map((cell, at) => element("td", { class: NUMBERS.test(columns[at].type) ? "number" : undefined, "data-title": columns[at].name },
    cell === null ? element("span", { class: "soft" }, "null") : element("pre", {}, cell))));

  return {
    element: whole,
    of,
    isFoldable: () => of > UNFOLDED && isPlain,
    add(child, entity) {
      body.append(child);
      isPlain &&= entity["@type"] === "currentStatus" && !entity.warnings?.length;
    },
    begin(found, { push, sources, from_beginning: isFromBeginning }) {
      columns = found;
      isPush = push;
      isPlain = false;
      if (push) reading(joinedNames(sources), isFromBeginning, element("button", { type: "button", class: "small", onclick: () => onBeginning?.(text) }, "Read from the beginning"));
      rows = element("tbody", {});
      body.append(element("div", { class: "scroll tall" }, element("table", { class: "rows" }, element("thead", {}, element("tr", {}, columns.map((column) => element("th", { scope: "col", title: column.type, class: NUMBERS.test(column.type) ? "number" : undefined }, column.name)))), rows)));
    },
    row(cells, isGone) { count += 1; waiting.push([cells, isGone]); if (isPush && waiting.length > SHOWN) waiting.shift(); },
    print(topic, { from_beginning: isFromBeginning }) {
      isPlain = false;
      isPush = true;
      reading(topic, isFromBeginning, "PRINT … FROM BEGINNING shows earlier ones, too.");
    },
    line(text_) {
      lines ??= body.appendChild(element("pre", { class: "scroll tall printed" }));
      count += 1;
      waiting.push(text_);
      if (waiting.length > SHOWN) waiting.shift();
    },
    end(message) { ended = message ?? "done"; },
    fail() {
      ended = "failed";
      const left = of - index - 1;
      if (left > 0) body.append(element("p", { class: "soft" }, `${number(left)} statement${left === 1 ? "" : "s"} behind it ${left === 1 ? "was" : "were"} not carried out.`));
    },
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
