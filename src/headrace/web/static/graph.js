// The topology as a picture: sub-topologies are boxes, records flow downwards, state lies beside its processor.

import { drawn, element, number, rate } from "./dom.js";

const WIDE = 216, HIGH = 46, GAP_X = 36, GAP_Y = 34, MARGIN = 22, TITLE = 24;

const short = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

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

// Each node stands in the middle above what it feeds first; nobody stands in the column of another's children.
function placed(subtopology) {
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
  const own = (name) => WIDE + ((byName.get(name).stores?.length ?? 0) ? WIDE * 0.8 : 0);
  const widths = new Map();
  const width = (name) => {
    if (!widths.has(name)) {
      const below = children.get(name).map(width);
      widths.set(name, Math.max(own(name), below.reduce((a, b) => a + b, 0) + GAP_X * Math.max(0, below.length - 1)));
    }
    return widths.get(name);
  };
  const places = new Map();
  const put = (name, left) => {
    const x = left + (width(name) - own(name)) / 2;
    places.set(name, { x: MARGIN + x, y: TITLE + MARGIN + rank.get(name) * (HIGH + GAP_Y), node: byName.get(name) });
    const span = children.get(name).reduce((sum, child) => sum + width(child) + GAP_X, -GAP_X);
    let next = left + Math.max(0, (width(name) - span) / 2);
    for (const child of children.get(name)) { put(child, next); next += width(child) + GAP_X; }
  };
  let left = 0;
  for (const root of roots) { put(root, left); left += width(root) + GAP_X; }
  const depth = 1 + Math.max(0, ...rank.values());
  return { places, width: Math.max(left - GAP_X, WIDE) + 2 * MARGIN, height: TITLE + depth * (HIGH + GAP_Y) + MARGIN };
}

// Where a click leads to; what is left out cannot be clicked.
const LINKS = { topic: (name) => `#/topics/${encodeURIComponent(name)}`, store: (name) => `#/stores/${encodeURIComponent(name)}` };

function nodePicture({ x, y, node }, figures, links) {
  const seen = figures[node.name] ?? {};
  const kind = node.type === "source" || node.type === "sink" ? node.type : "processor";
  const topic = node.topics?.join(", ") ?? node.topic ?? node.pattern ?? "";
  const says = [
    seen.rate !== undefined && seen.rate !== null ? rate(seen.rate) : null,
    seen.total !== undefined && seen.total !== null ? `${number(seen.total)} in all` : null,
    seen.errors ? `${number(seen.errors)} failed` : null,
    seen.dropped ? `${number(seen.dropped)} dropped` : null,
  ].filter(Boolean).join(" · ");
  const leads = links.topic && topic && !topic.includes(",");
  return drawn("g", { transform: `translate(${x} ${y})`, "data-node": node.name, "data-link": leads ? true : undefined,
    onclick: leads ? () => { location.hash = links.topic(topic); } : undefined },
    drawn("title", {}, `${node.name}${topic ? `\n${topic}` : ""}`),
    drawn("rect", { class: `node ${kind}${seen.errors ? " failing" : ""}`, width: WIDE, height: HIGH, rx: kind === "processor" ? 6 : 22 }),
    drawn("text", { x: WIDE / 2, y: 19, "text-anchor": "middle" }, short(topic || node.name, 30)),
    drawn("text", { class: "quiet", x: WIDE / 2, y: 36, "text-anchor": "middle" }, says || short(topic ? node.name : kind, 34)),
    (node.stores ?? []).map((store, index) => drawn("g", { transform: `translate(${WIDE + 16} ${index * 26 + 4})`, "data-link": links.store ? true : undefined,
      onclick: links.store && ((event) => { event.stopPropagation(); location.hash = links.store(store); }) },
      drawn("title", {}, store),
      drawn("line", { class: "edge state", x1: -16, y1: HIGH / 2 - index * 26 - 4, x2: 0, y2: 11 }),
      drawn("rect", { class: "store", width: WIDE * 0.7, height: 22, rx: 4 }),
      drawn("text", { x: 8, y: 15 }, short(store, 22)))));
}

export function graph(topology, figures, links = LINKS) {
  const boxes = topology.subtopologies.map((subtopology) => ({ subtopology, ...placed(subtopology) }));
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
    const x1 = a.x + WIDE / 2, y1 = a.y + HIGH, x2 = b.x + WIDE / 2, y2 = b.y;
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
      drawn("text", { class: "quiet", x: 14, y: 20 }, `Sub-topology ${box.subtopology.id}${box.subtopology.tasks ? ` · ${box.subtopology.tasks} tasks` : ""}`))),
    boxes.map((box) => box.subtopology.nodes.flatMap((node) => [
      ...node.successors.map((next) => curve(node.name, next, moves(node.name))),
      ...(node.topics ?? []).flatMap((topic) => (writers.get(topic) ?? []).map((writer) => curve(writer, node.name, `across ${moves(writer)}`))),
    ])),
    boxes.map((box) => drawn("g", { transform: `translate(${box.left} ${box.top})` }, [...box.places.values()].map((place) => nodePicture(place, figures, links)))));
  return element("div", { class: "graph" }, picture);
}
