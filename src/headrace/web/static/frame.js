// What every console has around its pages: the address behind '#', the navigation, light or dark, a banner.

import { card, element } from "./dom.js";

const page = document.getElementById("page");

// A page is [id, title, draw, repeated]. One that is repeated is drawn anew with every beat; the others keep what was
// typed into them. Returns what draws the page of the address: anew, or as one beat of it.
export function pages(list, live, isReady) {
  let leaving = new AbortController();
  let drawing = false;
  async function show(fresh) {
    const [path, search] = location.hash.slice(2).split("?");
    const [name, ...rest] = (path || list[0][0]).split("/").map(decodeURIComponent);
    const found = list.find(([id]) => id === name) ?? list[0];
    if (!fresh && (!found[3] || drawing)) return;
    if (fresh) { leaving.abort(); leaving = new AbortController(); }
    document.getElementById("navigation").replaceChildren(...list.map(([id, title]) => element("a", { href: `#/${id}`, "aria-current": id === found[0] ? "page" : undefined }, title)));
    if (!isReady()) return;
    drawing = true;
    try {
      await found[2](page, live, rest, leaving.signal, new URLSearchParams(search));
    } catch (error) {
      if (error.name !== "AbortError") page.replaceChildren(card("This did not work", element("p", { class: "error" }, error.message)));
    } finally {
      drawing = false;
    }
  }
  addEventListener("hashchange", () => show(true));
  show(true);
  return show;
}

export function banner(text, kind) {
  const stall = document.getElementById("stall");
  stall.hidden = !text;
  stall.textContent = text || "";
  stall.className = `banner ${kind ?? ""}`;
}

document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("headrace-theme", root.dataset.theme);
});
const kept = localStorage.getItem("headrace-theme");
if (kept) document.documentElement.dataset.theme = kept;
