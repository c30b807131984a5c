// Two runs side by side: how far they went together, where they part, and what each took.
import { html, useState, useLoaded, Badge, Link, Problem, Table, amount, clock, lasting, runLink, spent } from "./parts.js";
import { get } from "./api.js";

export function Compare() {
  const given = new URLSearchParams(location.search);
  const [left, setLeft] = useState(given.get("left") || "");
  const [right, setRight] = useState(given.get("right") || "");
  const known = useLoaded(() => get("/api/runs", { limit: 200 }), []);
  const ready = left && right;
  const { value, error } = useLoaded(() => (ready ? get("/api/compare", { left, right }) : Promise.resolve(null)), [left, right]);
  const pick = (label, chosen, set, id) => html`<label class="filter grow"><span>${label}</span><input id=${id} list="known" value=${chosen} onChange=${(event) => set(event.target.value)} /></label>`;
  return html`<section>
    <h1>Compare</h1>
    <datalist id="known">${((known.value && known.value.runs) || []).map(({ summary }) => html`<option value=${summary.run}>${summary.machine}</option>`)}</datalist>
    <div class="filters">${pick("One run", left, setLeft, "left")}${pick("Another", right, setRight, "right")}</div>
    <${Problem} error=${ready ? error : null} />
    ${!ready && html`<p class="soft">Name two runs: how far they went together is shown, where they part, and what each took.</p>`}
    ${ready && value && html`<${Result} value=${value} />`}
  </section>`;
}

function Result({ value }) {
  const { left, right, common, why } = value;
  const states = [...new Set([...left.states, ...right.states].map((state) => state.state))].filter(Boolean);
  const of = (side, name) => side.states.find((state) => state.state === name);
  const tell = (state) => (state ? `${state.visits} × · ${lasting(state.total)}` : "–");
  return html`<p class="lead"><b>${common}</b> ${common === 1 ? "step is" : "steps are"} alike; then ${why}.</p>
    <div class="split">${[left, right].map((side) => html`<div class="card">
      <div class="title-row"><${Link} to=${runLink(side.summary.run)} class="mono">${side.summary.run}<//> <${Badge} status=${side.summary.status} model=${side.summary.model} /></div>
      <p class="soft">${side.summary.machine} · ${side.summary.seq + 1} steps · ${lasting(side.seconds)} · ${spent(side.costs.total) || "no cost"}</p>
      <ol class="story short" tabindex="0" aria-label="Steps of ${side.summary.run}">${side.steps.map((step) => html`<li key=${step.seq}><p class="scene-head"><span class="soft figure">${step.seq}</span> <b>${step.sentence}</b></p>${step.text && html`<p class="said small">${step.text}</p>`}</li>`)}</ol>
      ${!side.steps.length && html`<p class="soft">Nothing more.</p>`}
    </div>`)}</div>
    <h2>States</h2>
    <${Table} head=${["state", left.summary.run, right.summary.run]} rows=${states.map((name) => [name, tell(of(left, name)), tell(of(right, name))])} />`;
}
