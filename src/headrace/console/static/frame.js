// What every console has around its pages: the address behind '#', the navigation, light or dark, a banner.

import { card, element } from "./dom.js";

let page = document.getElementById("page");

// A page is [id, title, draw, repeated, parts]. One that is repeated is drawn anew with every beat; the others keep what
// was typed into them. `parts` is how many parts its address may have behind its own name. Returns what draws the page
// of the address: anew, or as one beat of it.
export function pages(list, live, isReady) {
  let leaving = new AbortController();
  let drawing = null;
  async function show(fresh) {
    const { name, rest, search } = address(list[0][0]);
    const found = list.find(([id, , , , parts = 0]) => id === name && rest.length <= parts);
    if (!fresh && (!found?.[3] || drawing)) return;
    if (fresh) leave();
    document.getElementById("navigation").replaceChildren(...list.map(([id, title]) => element("a", { href: `#/${id}`, "aria-current": id === found?.[0] ? "page" : undefined }, title)));
    if (!found) { page.replaceChildren(unknown(list)); return; }
    if (!isReady()) return;
    const place = drawing = page;
    try {
      await found[2](place, live, rest, leaving.signal, search);
    } catch (error) {
      if (error.name !== "AbortError") place.replaceChildren(card(error.isUnknown ? "Not found" : "This did not work", element("p", { class: "error" }, error.message), element("p", {}, "Back to ", element("a", { href: `#/${found[0]}` }, found[1]))));
    } finally {
      if (drawing === place) drawing = null;
    }
  }
  // Who is still waiting for an answer draws where nobody looks.
  function leave() {
    leaving.abort();
    leaving = new AbortController();
    const left = page;
    page = left.cloneNode();
    left.replaceWith(page);
  }
  addEventListener("hashchange", () => show(true));
  show(true);
  return show;
}

function address(first) {
  const [path, search] = location.hash.replace(/^#\/?/, "").split("?");
  try {
    const [name, ...rest] = (path || first).split("/").map(decodeURIComponent);
    return { name, rest: rest.filter(Boolean), search: new URLSearchParams(search) };
  } catch {
    // A sign of per cent that encodes nothing.
    return { name: null, rest: [], search: new URLSearchParams() };
  }
}

const unknown = (list) => card("Not found", element("p", { class: "error" }, `There is no page ${location.hash}.`),
  element("p", {}, "There are ", list.map(([id, title], at) => [at ? (at === list.length - 1 ? " and " : ", ") : "", element("a", { href: `#/${id}` }, title)]), "."));

let shown = null, dismissed = null;

// A line below the header. What is said again is not drawn again, so that nobody clicks on what is being replaced;
// with `dismissible` it can be taken away, until something else is to be said.
export function banner(text, kind, { leads, dismissible = false } = {}) {
  const stall = document.getElementById("stall");
  const key = JSON.stringify([text, kind, leads]);
  if (key === shown) return;
  shown = key;
  stall.hidden = !text || key === dismissed;
  stall.className = `banner ${kind ?? ""} ${dismissible ? "line" : ""}`;
  const close = element("button", { type: "button", class: "close", "aria-label": "Dismiss", title: "Dismiss", onclick: () => { dismissed = key; stall.hidden = true; } }, "×");
  stall.replaceChildren(...[element("span", { class: "text", title: dismissible ? text : undefined }, text || ""), leads && element("a", { href: leads[0] }, leads[1]), dismissible && close].filter(Boolean));
}

document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("headrace-theme", root.dataset.theme);
});
const kept = localStorage.getItem("headrace-theme");
if (kept) document.documentElement.dataset.theme = kept;
