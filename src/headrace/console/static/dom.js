// Elements without markup: everything that comes from a record becomes a text node, so nothing in it can be code.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

export const element = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
export const drawn = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

// Roles are said aloud, because a table whose rows are stacked on a phone is none to a browser any more.
export function table(columns, rows, emptyText, link) {
  if (!rows.length) return element("p", { class: "empty" }, emptyText);
  // A real link that covers its row: it can be opened in another tab, copied, and reached by the keyboard.
  const shown = (row, content, at) => (link && at === 0 ? element("a", { class: "whole", href: link(row) }, content) : content);
  return element("div", { class: "scroll" },
    element("table", { class: "stacked", role: "table" },
      element("thead", { role: "rowgroup" }, element("tr", { role: "row" }, columns.map(([title, , kind]) => element("th", { class: kind, scope: "col", role: "columnheader" }, title)))),
      element("tbody", { role: "rowgroup" }, rows.map((row) => element("tr", { class: link && "link", role: "row" },
        columns.map(([title, value, kind], at) => element("td", { class: kind, role: "cell", "data-title": title }, shown(row, value(row), at))))))));
}

export const card = (title, ...children) => element("section", { class: "card" }, title && element("h2", {}, title), children);

export function valueText(value) {
  if (value === null || value === undefined) return element("span", { class: "soft" }, "null");
  const text = typeof value === "string" ? value : oneLine(value);
  if (text.length <= LONG) return element("pre", {}, text);
  const whole = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return element("details", {}, element("summary", {}, element("code", {}, `${text.slice(0, LONG)}…`)), element("pre", {}, whole));
}

const LONG = 160;

// One line, with room to breathe: {"points": 11, "purchases": 1}.
function oneLine(value) {
  if (Array.isArray(value)) return `[${value.map(oneLine).join(", ")}]`;
  if (value !== null && typeof value === "object") return `{${Object.entries(value).map(([key, one]) => `${JSON.stringify(key)}: ${oneLine(one)}`).join(", ")}}`;
  return JSON.stringify(value) ?? "null";
}

export const number = (value, digits = 0) => (value ?? 0).toLocaleString(undefined, { maximumFractionDigits: digits });
export const rate = (value) => `${number(value, value < 10 ? 1 : 0)}/s`;
export const time = (milliseconds) => milliseconds === null || milliseconds === undefined || milliseconds < 0 ? "–" : new Date(milliseconds).toISOString().replace("T", " ").replace("Z", "");

export function ago(milliseconds) {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return `${Math.round(seconds / 3600)} h`;
}
