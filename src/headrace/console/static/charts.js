// Line charts and stacked bars, as plain SVG.

import { drawn, element, number } from "./dom.js";

const WIDTH = 640, HEIGHT = 170, LEFT = 52, BOTTOM = 20, TOP = 8;
const COLOURS = ["var(--accent)", "var(--series-2)", "var(--series-3)", "var(--series-4)", "var(--bad)", "var(--soft)"];
export const colour = (index) => COLOURS[index % COLOURS.length];

export function lines(series, unit = "") {
  const drawnSeries = series.filter((one) => one.points.length);
  if (!drawnSeries.length) return element("p", { class: "empty" }, "Nothing has been measured yet.");
  const times = drawnSeries.flatMap((one) => one.points.map(([at]) => at));
  const from = Math.min(...times), to = Math.max(...times, from + 1000);
  const top = Math.max(1, ...drawnSeries.flatMap((one) => one.points.map(([, value]) => value)));
  const x = (at) => LEFT + ((at - from) / (to - from)) * (WIDTH - LEFT - 6);
  const y = (value) => TOP + (1 - value / top) * (HEIGHT - TOP - BOTTOM);
  const ticks = [0, top / 2, top];
  const picture = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: "100%", role: "img", "aria-label": series.map((one) => one.name).join(", ") },
    ticks.map((tick) => [
      drawn("line", { class: "axis", x1: LEFT, x2: WIDTH - 6, y1: y(tick), y2: y(tick) }),
      drawn("text", { class: "quiet", x: LEFT - 6, y: y(tick) + 4, "text-anchor": "end" }, number(tick, tick < 10 ? 1 : 0)),
    ]),
    drawn("text", { class: "quiet", x: LEFT, y: HEIGHT - 4 }, new Date(from).toLocaleTimeString()),
    drawn("text", { class: "quiet", x: WIDTH - 6, y: HEIGHT - 4, "text-anchor": "end" }, new Date(to).toLocaleTimeString()),
    drawnSeries.map((one, index) => drawn("polyline", {
      fill: "none", stroke: colour(index), "stroke-width": 1.8,
      points: one.points.map(([at, value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).join(" "),
    }, drawn("title", {}, one.name))));
  return [picture, legend(drawnSeries.map((one) => {
    const last = one.points[one.points.length - 1][1];
    return `${one.name}: ${number(last, last < 10 ? 1 : 0)}${unit}`;
  }))];
}

export const legend = (names) => element("div", { class: "legend" },
  names.map((name, index) => element("span", {}, element("i", { style: `background:${colour(index)}` }), name)));

export function stackedBars(columns, names, describe) {
  if (!columns.length) return element("p", { class: "empty" }, "No batch yet.");
  const top = Math.max(1, ...columns.map((parts) => parts.reduce((sum, part) => sum + part, 0)));
  return [
    element("div", { class: "bars" }, columns.map((parts, at) => element("div", { title: describe(at) },
      parts.map((part, index) => element("span", { style: `background:${colour(index)};height:${((part / top) * 128).toFixed(1)}px` }))))),
    legend(names),
  ];
}
