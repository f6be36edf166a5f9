// The topology as a picture: sub-topologies are boxes, records flow downwards, state lies beside its processor.

import { drawn, element, number, rate } from "./dom.js";

const NARROW = 150, WIDE = 340, HIGH = 46, STORE_WIDE = 200, STORE_GAP = 16, GAP_X = 36, GAP_Y = 34, MARGIN = 22, TITLE = 24, INSIDE = 14;
const FONT = "12px system-ui, sans-serif", QUIET_FONT = "11px system-ui, sans-serif";

const ruler = document.createElement("canvas").getContext("2d");
function widthOf(text, font) {
  ruler.font = font;
  return ruler.measureText(text).width;
}

// As much of a text as there is room for.
function fitting(text, room, font) {
  if (widthOf(text, font) <= room) return text;
  let low = 0, high = text.length;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (widthOf(`${text.slice(0, middle)}…`, font) <= room) low = middle;
    else high = middle - 1;
  }
  return `${text.slice(0, low).trimEnd()}…`;
}

// What stands in the box of a node. With `texts` it is the SQL that it stands for, without them its topic or its name.
function labelled(node, seen, text) {
  const kind = node.type === "source" || node.type === "sink" ? node.type : "processor";
  const topic = node.topics?.join(", ") ?? node.topic ?? node.pattern ?? "";
  const figures = [
    seen.rate !== undefined && seen.rate !== null ? rate(seen.rate) : null,
    seen.total !== undefined && seen.total !== null ? `${number(seen.total)} in all` : null,
    seen.errors ? `${number(seen.errors)} failed` : null,
    seen.dropped ? `${number(seen.dropped)} dropped` : null,
    seen.failed ? "fails" : null,
  ].filter(Boolean);
  const title = text?.sql || topic || node.name;
  const quiet = (text ? [topic || text.role, ...figures].filter(Boolean) : figures).join(" · ") || (text || topic ? node.name : kind);
  // The ends of sources and sinks are round.
  const inside = kind === "processor" ? INSIDE : INSIDE + 8;
  // Figures change all the time, and boxes are not to jump with them.
  const spare = figures.length ? 48 : 0;
  const wanted = Math.max(widthOf(title, FONT), widthOf(quiet, QUIET_FONT) + spare) + 2 * inside;
  const width = Math.min(WIDE, Math.max(NARROW, 24 * Math.ceil(wanted / 24)));
  const stores = (node.stores ?? []).map((name) => ({ name, width: Math.min(STORE_WIDE, widthOf(name, FONT) + 16) }));
  return {
    kind, topic, width, stores, room: width - 2 * inside, full: [text?.sql, node.name, topic].filter(Boolean).join("\n"),
    title: fitting(title, width - 2 * inside, FONT), quiet: fitting(quiet, width - 2 * inside, QUIET_FONT),
    side: stores.length ? STORE_GAP + Math.max(...stores.map((store) => store.width)) : 0,
  };
}

// A node stands below the lowest of those that feed it.
function ranks(nodes) {
  const byName = new Map(nodes.map((node) => [node.name, node]));
  const found = new Map();
  const rank = (name, above) => {
    if (found.has(name)) return found.get(name);
    if (above.has(name)) return 0;
    const feeders = byName.get(name).predecessors.filter((feeder) => byName.has(feeder));
    const value = feeders.length ? 1 + Math.max(...feeders.map((feeder) => rank(feeder, new Set([...above, name])))) : 0;
    found.set(name, value);
    return value;
  };
  nodes.forEach((node) => rank(node.name, new Set()));
  return found;
}

// Each node stands above the middle of what it feeds first; nobody stands in the column of another's children.
function placed(subtopology, labels) {
  const rank = ranks(subtopology.nodes);
  const byName = new Map(subtopology.nodes.map((node) => [node.name, node]));
  const children = new Map(subtopology.nodes.map((node) => [node.name, []]));
  const roots = [];
  for (const node of subtopology.nodes) {
    // The lowest of those that feed it: then all lines lead downwards.
    const feeders = node.predecessors.filter((feeder) => byName.has(feeder) && rank.get(feeder) < rank.get(node.name));
    const above = feeders.sort((a, b) => rank.get(b) - rank.get(a))[0];
    if (above === undefined) roots.push(node.name);
    else children.get(above).push(node.name);
  }
  // How far a node and all below it reach to the left and to the right of the node's middle.
  const reaches = new Map();
  const reach = (name) => {
    if (reaches.has(name)) return reaches.get(name);
    let end = 0;
    const middles = children.get(name).map((child) => {
      const { left, right } = reach(child);
      const middle = end + left;
      end = middle + right + GAP_X;
      return middle;
    });
    const middle = middles.length ? (middles[0] + middles[middles.length - 1]) / 2 : 0;
    const { width, side } = labels.get(name);
    const found = { left: Math.max(width / 2, middle), right: Math.max(width / 2 + side, end - GAP_X - middle), shifts: middles.map((one) => one - middle) };
    reaches.set(name, found);
    return found;
  };
  const places = new Map();
  const put = (name, middle) => {
    places.set(name, { x: MARGIN + middle - labels.get(name).width / 2, y: TITLE + MARGIN + rank.get(name) * (HIGH + GAP_Y), node: byName.get(name) });
    children.get(name).forEach((child, index) => put(child, middle + reach(name).shifts[index]));
  };
  let end = 0;
  for (const root of roots) {
    put(root, end + reach(root).left);
    end += reach(root).left + reach(root).right + GAP_X;
  }
  const depth = 1 + Math.max(0, ...rank.values());
  const title = `Sub-topology ${subtopology.id}${subtopology.tasks ? ` · ${subtopology.tasks} task${subtopology.tasks === 1 ? "" : "s"}` : ""}`;
  return { places, title, width: Math.max(end - GAP_X, widthOf(title, QUIET_FONT)) + 2 * MARGIN, height: TITLE + depth * (HIGH + GAP_Y) + MARGIN };
}

// Where a click leads to; what is left out cannot be clicked.
const LINKS = { topic: (name) => `#/topics/${encodeURIComponent(name)}`, store: (name) => `#/stores/${encodeURIComponent(name)}` };

function nodePicture({ x, y, node }, seen, label, links) {
  const { kind, width } = label;
  const leads = links.topic && node.log_topic;
  const picture = drawn("g", { transform: `translate(${x} ${y})`, "data-node": node.name },
    drawn("title", {}, label.full),
    drawn("rect", { class: `node ${kind}${seen.errors || seen.failed ? " failing" : ""}`, width, height: HIGH, rx: kind === "processor" ? 6 : 22 }),
    drawn("text", { class: "sql", x: width / 2, y: 19, "text-anchor": "middle" }, label.title),
    drawn("text", { class: "quiet", x: width / 2, y: 36, "text-anchor": "middle" }, label.quiet),
    label.stores.map((store, index) => linked(links.store?.(store.name), drawn("g", { transform: `translate(${width + STORE_GAP} ${index * 26 + 4})` },
      drawn("title", {}, store.name),
      drawn("line", { class: "edge state", x1: -STORE_GAP, y1: HIGH / 2 - index * 26 - 4, x2: 0, y2: 11 }),
      drawn("rect", { class: "store", width: store.width, height: 22, rx: 4 }),
      drawn("text", { x: 8, y: 15 }, fitting(store.name, store.width - 15, FONT))))));
  return linked(leads && links.topic(leads), picture);
}

const linked = (href, picture) => (href ? drawn("a", { href }, picture) : picture);

export function graph(topology, figures, links = LINKS, texts = {}) {
  const labels = new Map(topology.subtopologies.flatMap(({ nodes }) => nodes.map((node) => [node.name, labelled(node, figures[node.name] ?? {}, texts[node.name])])));
  const boxes = topology.subtopologies.map((subtopology) => ({ subtopology, ...placed(subtopology, labels) }));
  const width = Math.max(...boxes.map((box) => box.width), 320) + 2 * MARGIN;
  let top = MARGIN;
  const where = new Map();
  for (const box of boxes) {
    box.top = top;
    box.left = (width - box.width) / 2;
    for (const [name, place] of box.places) where.set(name, { x: place.x + box.left, y: place.y + top });
    top += box.height + GAP_Y;
  }
  const writers = new Map();
  for (const { subtopology } of boxes) for (const node of subtopology.nodes) if (node.type === "sink" && node.topic) (writers.get(node.topic) ?? writers.set(node.topic, []).get(node.topic)).push(node.name);
  const curve = (from, to, kind) => {
    const a = where.get(from), b = where.get(to);
    if (!a || !b) return null;
    const x1 = a.x + labels.get(from).width / 2, y1 = a.y + HIGH, x2 = b.x + labels.get(to).width / 2, y2 = b.y;
    const bend = Math.max(18, Math.abs(y2 - y1) / 2);
    return drawn("path", { class: `edge ${kind}`, "marker-end": "url(#arrow)", d: `M${x1} ${y1} C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}` });
  };
  const moves = (name) => (figures[name]?.rate > 0 ? "moving" : "");
  // A wide one shrinks to the page as long as it can be read; the rest is scrolled.
  const style = `height: auto; max-width: max(100%, ${Math.round(width * 0.6)}px)`;
  const picture = drawn("svg", { width, height: top, style, viewBox: `0 0 ${width} ${top}`, role: "img", "aria-label": "Topology" },
    drawn("defs", {}, drawn("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
      drawn("path", { d: "M0 0L8 4L0 8z", fill: "var(--soft)" }))),
    boxes.map((box) => drawn("g", { transform: `translate(${box.left} ${box.top})` },
      drawn("rect", { class: "box", width: box.width, height: box.height, rx: 12 }),
      drawn("text", { class: "quiet", x: 14, y: 20 }, box.title))),
    boxes.map((box) => box.subtopology.nodes.flatMap((node) => [
      ...node.successors.map((next) => curve(node.name, next, moves(node.name))),
      ...(node.topics ?? []).flatMap((topic) => (writers.get(topic) ?? []).map((writer) => curve(writer, node.name, `across ${moves(writer)}`))),
    ])),
    boxes.map((box) => drawn("g", { transform: `translate(${box.left} ${box.top})` }, [...box.places.values()].map((place) => nodePicture(place, figures[place.node.name] ?? {}, labels.get(place.node.name), links)))));
  return element("div", { class: "graph" }, picture);
}

// Shows the same part of a graph as before; at first the node at which it begins.
export function scrollGraph(drawing, before) {
  if (before) { drawing.scrollTo(before.scrollLeft, before.scrollTop); return; }
  const first = drawing.querySelector("[data-node]")?.getBoundingClientRect();
  if (first) drawing.scrollTo(first.left + first.width / 2 - drawing.getBoundingClientRect().left - drawing.clientWidth / 2, 0);
}
