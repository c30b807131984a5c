// Start a run of any machine or workflow, with a form made of its schema.
import { html, useEffect, useRef, useState, useLoaded, Link, Problem, SchemaForm, go, runLink } from "./parts.js";
import { get, post } from "./api.js";

export function Start({ me }) {
  const { value, error } = useLoaded(() => get("/api/machines"), []);
  const [source, setSource] = useState(() => new URLSearchParams(location.search).get("machine") || "");
  const [typed, setTyped] = useState("");
  const choose = (name) => {
    setSource(name);
    history.replaceState({}, "", `/start?machine=${encodeURIComponent(name)}`);
  };
  return html`<section>
    <h1>Start a run</h1>
    <p class="lead">Choose a machine or a workflow.</p>
    <${Problem} error=${error} />
    <div class="choices">
      ${((value && value.machines) || []).map((offer) => html`<button class="choice" aria-pressed=${offer.source === source} onClick=${() => choose(offer.source)}><b>${offer.source.split("/").pop()}</b><span>${offer.help}</span></button>`)}
    </div>
    <form class="inline" onSubmit=${(event) => (event.preventDefault(), typed.trim() && choose(typed.trim()))}>
      <label class="filter grow"><span>Or a file here</span><input type="text" placeholder="file.py:NAME, flow.json" value=${typed} onInput=${(event) => setTyped(event.target.value)} /></label>
      <button>Open</button>
    </form>
    ${source && html`<${Order} key=${source} source=${source} models=${(value && value.models) || []} me=${me} />`}
  </section>`;
}

function Order({ source, models, me }) {
  const { value, error } = useLoaded(() => get("/api/form", { machine: source }), [source]);
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState(null);
  const [model, setModel] = useState("");
  const [usd, setUsd] = useState("");
  const [calls, setCalls] = useState("");
  const box = useRef(null);
  useEffect(() => box.current && box.current.scrollIntoView({ block: "nearest" }), [!!value]);
  const begin = async (input) => {
    setBusy(true);
    setRefused(null);
    const budget = { ...(usd !== "" && { usd: Number(usd) }), ...(calls !== "" && { calls: Math.round(Number(calls)) }) };
    try {
      const begun = await post("/api/runs", { machine: source, input: input ?? null, model, ...(Object.keys(budget).length && { budget }) });
      go(runLink(begun.run));
    } catch (problem) {
      setRefused(problem);
      setBusy(false);
    }
  };
  if (error) return html`<${Problem} error=${error} />`;
  if (!value) return html`<p class="soft">…</p>`;
  return html`<div class="card form" ref=${box}>
    <h2>${value.machine}</h2>
    ${me.read_only ? html`<p>This page is read-only.</p>` : html`<${SchemaForm} schema=${value.schema} submit=${begin} label="Start" busy=${busy}>
      <details class="more"><summary>Model and budget</summary>
        <div class="field"><label for="model">Model</label><input id="model" list="models" value=${model} placeholder=${models[0] || ""} onInput=${(event) => setModel(event.target.value)} /><datalist id="models">${models.map((name) => html`<option value=${name} />`)}</datalist></div>
        <div class="pair">
          <div class="field"><label for="usd">At most, in dollars</label><input id="usd" type="number" min="0" step="any" value=${usd} onInput=${(event) => setUsd(event.target.value)} /></div>
          <div class="field"><label for="calls">At most, in calls</label><input id="calls" type="number" min="0" step="1" value=${calls} onInput=${(event) => setCalls(event.target.value)} /></div>
        </div>
      </details>
      <${Problem} error=${refused} />
    <//>`}
  </div>`;
}
