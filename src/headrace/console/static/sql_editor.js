// Where statements are typed: a text area above its own coloured copy, line numbers, and a history.

import { element } from "./dom.js";

const WORDS = new Set(`ADD ALL ALTER AND AS ASSERT BEGINNING BETWEEN BY CASE CAST CHANGES CONNECTOR CONNECTORS CREATE DEFINE DELETE DESCRIBE
  DISTINCT DROP ELSE EMIT END ESCAPE EXISTS EXPLAIN EXTENDED FALSE FINAL FROM FULL FUNCTION FUNCTIONS GRACE GROUP HAVING HEADER HEADERS HOPPING IF IN
  INNER INSERT INTO IS JOIN KEY LEFT LIKE LIMIT LIST NOT NULL ON OR OUTER PARTITION PAUSE PERIOD PRIMARY PRINT PROPERTIES QUERIES REPLACE RESUME
  RETENTION RIGHT SCHEMA SELECT SESSION SET SHOW SIZE SOURCE STREAM STREAMS TABLE TABLES TERMINATE THEN TO TOPIC TOPICS TRUE TUMBLING TYPE TYPES
  UNDEFINE UNSET VALUES VARIABLES WHEN WHERE WINDOW WITH WITHIN`.split(/\s+/));
const TOKEN = /(--[^\n]*|\/\*[^]*?(?:\*\/|$))|('(?:[^']|'')*(?:'|$))|(`[^`]*(?:`|$)|"[^"]*(?:"|$))|(\$\{\w+\})|(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|([\p{L}_@][\p{L}\p{N}_]*)/gu;
const KINDS = ["comment", "text", "name", "variable", "number", "word"];
const KEPT = "headrace-sql-history", MOST = 50;
// What may hold a password: what is kept by a browser is read by whoever sits there next.
const SECRET = /\bCONNECTOR\b|'[^']*(?:password|secret|jaas|user\.info|credentials)[^']*'/i;

// Pieces of a text with their kinds; together they are the text.
function* coloured(text) {
  let end = 0;
  for (const found of text.matchAll(TOKEN)) {
    if (found.index > end) yield [text.slice(end, found.index), "", end];
    const kind = KINDS[found.slice(1).findIndex((part) => part !== undefined)];
    yield [found[0], kind === "word" && !WORDS.has(found[0].toUpperCase()) ? "" : kind, found.index];
    end = found.index + found[0].length;
  }
  if (end < text.length) yield [text.slice(end), "", end];
}

// Columns are counted in characters, offsets of a text area in halves of them.
export function offsetOf(text, line, column) {
  const lines = text.split("\n");
  const before = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
  return Math.min(text.length, before + [...(lines[line - 1] ?? "")].slice(0, column - 1).join("").length);
}

function history() {
  try {
    const found = JSON.parse(localStorage.getItem(KEPT) ?? "[]");
    return Array.isArray(found) ? found.filter((one) => typeof one === "string" && !SECRET.test(one)) : [];
  } catch {
    return [];
  }
}

export function remember(text) {
  if (SECRET.test(text)) return;
  const texts = [text, ...history().filter((one) => one !== text)].slice(0, MOST);
  try {
    localStorage.setItem(KEPT, JSON.stringify(texts));
  } catch {
    // Full, or not allowed: then it runs without being remembered.
  }
}

export function editor(onRun) {
  const area = element("textarea", { id: "sql", "aria-label": "SQL statements", "aria-describedby": "problem", spellcheck: "false", autocapitalize: "off", autocomplete: "off", wrap: "off",
    placeholder: "SHOW STREAMS;   -- Ctrl+Enter runs, Alt+↑ is what ran before" });
  const paint = element("pre", { class: "paint", "aria-hidden": "true" });
  const numbers = element("pre", { class: "numbers", "aria-hidden": "true" });
  const whole = element("div", { class: "editor" }, numbers, element("div", { class: "typed" }, paint, area));
  let wrong = null, step = -1, draft = "", ran = null;

  function draw() {
    const text = area.value;
    const parts = [...coloured(text)].map(([part, kind, start]) => {
      const isWrong = wrong !== null && wrong.offset >= start && wrong.offset < start + part.length;
      return kind || isWrong ? element("span", { class: `${kind} ${isWrong ? "wrong" : ""}` }, part) : part;
    });
    if (wrong !== null && wrong.offset >= text.length) parts.push(element("span", { class: "wrong" }, " "));
    paint.replaceChildren(...parts, "\n");
    const lines = text.split("\n").length;
    numbers.replaceChildren(...Array.from({ length: lines }, (_, index) => element("span", { class: wrong?.line === index + 1 ? "wrong" : undefined }, `${index + 1}\n`)));
  }

  function put(text) {
    area.value = text;
    wrong = null;
    draw();
  }

  function walk(by) {
    const texts = history();
    const next = Math.max(-1, Math.min(texts.length - 1, step + by));
    if (next === step) return;
    if (step === -1) draft = area.value;
    step = next;
    put(step === -1 ? draft : texts[step]);
  }

  area.addEventListener("input", () => { wrong = null; step = -1; draw(); });
  area.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); onRun(); }
    if (event.altKey && (event.key === "ArrowUp" || event.key === "ArrowDown")) { event.preventDefault(); walk(event.key === "ArrowUp" ? 1 : -1); }
  });
  draw();
  return {
    element: whole, put, history,
    focus: () => area.focus(),
    // What is selected, or all; what stands before is blank, so that places in it are places in the whole.
    chosen() {
      const { selectionStart: from, selectionEnd: to, value } = area;
      return from === to ? value : value.slice(0, from).replace(/[^\n]/gu, " ") + value.slice(from, to);
    },
    // Shows where something is wrong in the text that ran last. The caret stays with somebody who has gone on meanwhile.
    mark(line, column, { leads }) {
      if (area.value !== ran?.value) return;
      wrong = { line, offset: offsetOf(area.value, line, column) };
      draw();
      if (!leads && (area.selectionStart !== ran.from || area.selectionEnd !== ran.to)) return;
      area.focus();
      area.setSelectionRange(wrong.offset, wrong.offset);
      paint.querySelector(".wrong")?.scrollIntoView({ block: "nearest", inline: "nearest" });
    },
    begin() {
      ran = { value: area.value, from: area.selectionStart, to: area.selectionEnd };
      wrong = null;
      step = -1;
      draw();
    },
  };
}
