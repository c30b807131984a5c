// The figures of all runs: durations, tokens, bottlenecks, what it cost, ratings.
import { html, useState, useLoaded, Bars, Empty, Problem, Table, amount, lasting } from "./parts.js";
import { get } from "./api.js";
import { bills, shortModels } from "./run.js";
import { Sections } from "./sections.js";

const counted = ([, bill]) => bill.tokens;

export function Metrics() {
  const { value, error } = useLoaded(() => get("/api/metrics"), []);
  const [machine, setMachine] = useState("");
  if (error) return html`<section><h1>Metrics</h1><${Problem} error=${error} /></section>`;
  if (!value) return html`<section><h1>Metrics</h1><p class="soft">…</p></section>`;
  const machines = [...value.machines].sort((one, other) => other.runs - one.runs);
  if (!machines.length) return html`<section><h1>Metrics</h1><${Empty} title="No runs yet">Figures appear with the first run.<//></section>`;
  const chosen = machines.find((known) => known.machine === machine) || machines[0];
  const states = chosen.states.filter((state) => state.state);
  const slowest = [...states].sort((one, other) => other.total - one.total)[0];
  const hungriest = [...states].filter((state) => state.tokens).sort((one, other) => other.tokens - one.tokens)[0];
  const total = value.costs.total;
  const models = Object.entries(value.costs.by_model).filter(counted);
  const modelNames = shortModels(models.map(([name]) => name));
  return html`<section>
    <h1>Metrics</h1>
    <ul class="facts big">
      <li><b>${machines.reduce((sum, known) => sum + known.runs, 0)}</b><span>runs</span></li>
      <li><b>${amount("usd", total.usd)}</b><span>spent</span></li>
      <li><b>${amount("tokens", total.tokens)}</b><span>tokens</span></li>
      <li><b>${amount("calls", total.calls)}</b><span>calls</span></li>
    </ul>
    <div class="card">
      <div class="title-row"><h2>By state</h2><span class="spread"></span>
        <label class="filter"><span>Machine</span><select value=${chosen.machine} onChange=${(event) => setMachine(event.target.value)}>${machines.map((known) => html`<option value=${known.machine}>${known.machine} (${known.runs})</option>`)}</select></label></div>
      <p class="soft">${slowest ? `Slowest: ${slowest.state} (${lasting(slowest.total)}${slowest.waited ? `, ${lasting(slowest.waited)} of it waiting for people` : ""}).` : ""} ${hungriest ? `Most tokens: ${hungriest.state} (${amount("tokens", hungriest.tokens)}).` : ""}</p>
      <div class="charts">
        <${Bars} title="Time, with waiting for people in the other colour" bars=${states.filter((state) => state.total).sort((one, other) => other.total - one.total).map((state) => ({ name: state.state, value: state.total, told: lasting(state.total), other: state.waited }))} />
        <${Bars} title="Tokens" bars=${states.filter((state) => state.tokens).map((state) => ({ name: state.state, value: state.tokens, told: amount("tokens", state.tokens) }))} />
        <${Bars} title="Visits" bars=${[...states].sort((one, other) => other.visits - one.visits).map((state) => ({ name: state.state, value: state.visits, told: String(state.visits) }))} />
        <${Bars} title="Transitions" bars=${chosen.transitions.map((way) => ({ name: `${way.from} → ${way.to}`, value: way.times, told: String(way.times) }))} />
      </div>
    </div>
    <div class="card"><h2>Costs</h2><div class="charts">
      <${Bars} title="Tokens by model" bars=${models.map(([, bill], at) => ({ name: modelNames[at] || "–", value: bill.tokens || 0, told: [amount("tokens", bill.tokens), amount("usd", bill.usd)].filter((told) => told !== "unknown").join(" · ") || "unknown" }))} />
      <${Bars} title="Tokens by agent" bars=${Object.entries(value.costs.by_agent).filter(counted).map(([name, bill]) => ({ name: name || "–", value: bill.tokens || 0, told: amount("tokens", bill.tokens) }))} />
    </div><${Table} head=${["model", "calls", "tokens", "cost"]} rows=${bills(value.costs.by_model)} /></div>
    <${Sections} sections=${value.sections || []} />
    ${Object.keys(value.unread).length > 0 && html`<div class="card"><h2>Not readable</h2><${Table} head=${["run", "why"]} rows=${Object.entries(value.unread)} /></div>`}
  </section>`;
}
