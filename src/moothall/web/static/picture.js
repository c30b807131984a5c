// The picture of a machine: drawn by the server, lit by the page. States that are active glow, arrows that were taken
// are strong, and badges tell visits and cost.
import { html, useEffect, useMemo, useRef, useState } from "./parts.js";

const SPACE = "http://www.w3.org/2000/svg";

function parsed(svg) {
  const tree = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement;
  for (const part of tree.querySelectorAll("style, script, foreignObject")) part.remove();
  tree.removeAttribute("style");
  tree.setAttribute("focusable", "false");
  return document.importNode(tree, true);
}

export function Picture({ drawn, active = [], visits = {}, costs = {}, taken = null, label = "State diagram" }) {
  const box = useRef(null), tree = useRef(null), seen = useRef("");
  const [zoom, setZoom] = useState(0);
  const natural = useMemo(() => {
    const size = /viewBox="0 0 ([\d.]+) ([\d.]+)"/.exec(drawn.svg);
    return size ? [Number(size[1]), Number(size[2])] : [400, 300];
  }, [drawn.svg]);
  useEffect(() => {
    tree.current = parsed(drawn.svg);
    tree.current.setAttribute("aria-label", `${label}: ${drawn.name}`);
    box.current.replaceChildren(tree.current);
    seen.current = "";
  }, [drawn.svg]);
  useEffect(() => {
    const room = box.current.clientWidth - 2;
    const fit = Math.min(1.15, room / natural[0]);
    const scale = zoom || Math.max(fit, 0.72);
    tree.current.setAttribute("width", natural[0] * scale);
    tree.current.setAttribute("height", natural[1] * scale);
  }, [drawn.svg, zoom]);
  useEffect(() => {
    const lit = new Set();
    for (const name of active) for (const inner of [name, ...(drawn.around[name] || [])]) lit.add(inner);
    let first = null;
    for (const group of tree.current.querySelectorAll("[data-state]")) {
      const name = group.getAttribute("data-state");
      group.classList.toggle("active", lit.has(name));
      group.classList.toggle("visited", !!visits[name] && !lit.has(name));
      if (active.includes(name) && !first) first = group;
    }
    const where = active.join("+");
    if (first && where !== seen.current) {
      seen.current = where;
      reveal(box.current, first);
    }
  }, [drawn.svg, active.join("+"), visits]);
  useEffect(() => {
    for (const path of tree.current.querySelectorAll("[data-rows]")) {
      const rows = JSON.parse(path.getAttribute("data-rows"));
      path.classList.toggle("taken", !!taken && rows.some((row) => taken[row]));
    }
  }, [drawn.svg, taken]);
  useEffect(() => badges(tree.current, visits, costs), [drawn.svg, visits, costs]);
  return html`<div class="picture">
    <div class="picture-tools">
      <span class="soft small">${drawn.name} · ${drawn.states} states${drawn.changed ? " · changed since this run began" : ""}</span>
      <span class="spread"></span>
      <button class="quiet" aria-label="Smaller" onClick=${() => setZoom(Math.max(0.15, (zoom || scaleOf(box.current, natural)) / 1.3))}>−</button>
      <button class="quiet" aria-label="Fit to width" onClick=${() => setZoom(Math.min(1.15, (box.current.clientWidth - 2) / natural[0]))}>Fit</button>
      <button class="quiet" aria-label="Larger" onClick=${() => setZoom(Math.min(3, (zoom || scaleOf(box.current, natural)) * 1.3))}>+</button>
    </div>
    <div class="picture-box" ref=${box} tabindex="0" role="group" aria-label="${label}, scrollable"></div>
  </div>`;
}

const scaleOf = (box, natural) => Math.max(Math.min(1.15, (box.clientWidth - 2) / natural[0]), 0.72);

function reveal(box, group) {
  const outer = box.getBoundingClientRect(), inner = group.getBoundingClientRect();
  if (inner.top < outer.top + 20 || inner.bottom > outer.bottom - 20) box.scrollTop += inner.top - outer.top - outer.height / 2 + inner.height / 2;
  if (inner.left < outer.left + 10 || inner.right > outer.right - 10) box.scrollLeft += inner.left - outer.left - outer.width / 2 + inner.width / 2;
}

function badges(tree, visits, costs) {
  for (const old of tree.querySelectorAll(".badge-live")) old.remove();
  for (const group of tree.querySelectorAll("[data-state]")) {
    const name = group.getAttribute("data-state"), times = visits[name] || 0, cost = costs[name];
    if (!times && !cost) continue;
    const frame = group.querySelector("rect, circle");
    if (!frame || !frame.getBBox) continue;
    const place = frame.getBBox();
    const text = [times > 1 || cost ? `×${times}` : "", cost || ""].filter(Boolean).join(" ");
    if (!text) continue;
    const badge = document.createElementNS(SPACE, "g"), back = document.createElementNS(SPACE, "rect"), words = document.createElementNS(SPACE, "text");
    badge.setAttribute("class", "badge-live");
    words.textContent = text;
    const width = 10 + 6.2 * text.length;
    for (const [key, value] of Object.entries({ x: place.x + place.width - width + 8, y: place.y - 12, width, height: 17, rx: 8.5 })) back.setAttribute(key, value);
    words.setAttribute("x", place.x + place.width - width / 2 + 8);
    words.setAttribute("y", place.y + 0.2);
    words.setAttribute("text-anchor", "middle");
    badge.append(back, words);
    tree.append(badge);
  }
}
