// Start a run of any machine or workflow, with a form made of its schema.
import { html, useEffect, useRef, useState, useLoaded, Problem, SchemaForm, Warnings, go, runLink } from "./parts.js";
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
  const { value, error } = useLoaded(() => Promise.all([get("/api/form", { machine: source }), post("/api/preview", { machine: source })]), [source]);
  if (error) return html`<${Problem} error=${error} />`;
  if (!value) return html`<p class="soft">…</p>`;
  return html`<${OrderForm} form=${value[0]} first=${value[1]} source=${source} models=${models} me=${me} />`;
}

const LOOK = 300;

// What is to be known before the start is looked for again whenever something changes; nothing starts before it was shown.
function OrderForm({ form, first, source, models, me }) {
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState(null);
  const [input, setInput] = useState(null);
  const [model, setModel] = useState("");
  const [usd, setUsd] = useState("");
  const [calls, setCalls] = useState("");
  const [told, setTold] = useState(first);
  const [folder, setFolder] = useState("");
  const box = useRef(null);
  const budget = { ...(usd !== "" && { usd: Number(usd) }), ...(calls !== "" && { calls: Math.round(Number(calls)) }) };
  const order = (given) => ({ machine: source, input: given ?? null, model, ...(Object.keys(budget).length && { budget }) });
  const wish = JSON.stringify(order(input));
  const asked = useRef(wish);
  asked.current = wish;
  useEffect(() => box.current.scrollIntoView({ block: "nearest" }), []);
  useEffect(() => {
    const timer = setTimeout(() => post("/api/preview", JSON.parse(wish)).then((found) => asked.current === wish && setTold(found), () => {}), LOOK);
    return () => clearTimeout(timer);
  }, [wish]);
  const begin = async (given) => {
    setBusy(true);
    setRefused(null);
    try {
      const found = await post("/api/preview", order(given));
      setTold(found);
      if (found.folder !== folder) throw new Error("Confirm the folder first.");
      if (found.warnings.every((warning) => told.warnings.includes(warning))) return go(runLink((await post("/api/runs", order(given))).run));
    } catch (problem) {
      setRefused(problem);
    }
    setBusy(false);
  };
  return html`<div class="card form" ref=${box}>
    <h2>${form.machine}</h2>
    ${me.read_only ? html`<p>This page is read-only.</p>` : html`<${SchemaForm} schema=${form.schema} submit=${begin} changed=${setInput} label="Start" busy=${busy}>
      <details class="more"><summary>Model and budget</summary>
        <div class="field"><label for="model">Model</label><input id="model" list="models" value=${model} placeholder=${models[0] || ""} onInput=${(event) => setModel(event.target.value)} /><datalist id="models">${models.map((name) => html`<option value=${name} />`)}</datalist></div>
        <div class="pair">
          <div class="field"><label for="usd">At most, in dollars</label><input id="usd" type="number" min="0" step="any" value=${usd} onInput=${(event) => setUsd(event.target.value)} /></div>
          <div class="field"><label for="calls">At most, in calls</label><input id="calls" type="number" min="0" step="1" value=${calls} onInput=${(event) => setCalls(event.target.value)} /></div>
        </div>
      </details>
      <${Warnings} warnings=${told.warnings} />
      ${told.folder && html`<label class="check confirmed"><input type="checkbox" required checked=${folder === told.folder} onChange=${(event) => setFolder(event.target.checked ? told.folder : "")} /><span>Work in <code>${told.folder}</code>: files there may be changed</span></label>`}
      <${Problem} error=${refused} />
    <//>`}
  </div>`;
}
