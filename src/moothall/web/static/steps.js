// The steps of a run: as a story that reads without JSON, and as a timeline whose rows are made only where one looks.
import { html, useEffect, useLayoutEffect, useRef, useState, useCallback, Fold, Link, Problem, Table, amount, clock, lasting, runLink, spent, useLoaded } from "./parts.js";
import { get, runPath } from "./api.js";

const HUES = [222, 160, 28, 340, 190, 265, 90, 10];

function hue(name) {
  let sum = 0;
  for (const letter of name) sum = (sum * 31 + letter.codePointAt(0)) % 9973;
  return HUES[sum % HUES.length];
}

export function Face({ name }) {
  return html`<span class="face" aria-hidden="true" style=${{ "--hue": hue(name) }}>${(name || "·").slice(0, 1).toUpperCase()}</span>`;
}

const isQuiet = (step) => step.event.startsWith("effect.") && !step.text && step.event !== "effect.faltered";

// ---- the story

export function Story({ store, speech }) {
  const shown = store.latest().filter((step) => !isQuiet(step));
  const first = shown.length ? shown[0].seq : 0;
  return html`<div class="story">
    ${first > 0 && html`<button class="quiet" onClick=${store.earlier}>Show earlier steps (${first} before)</button>`}
    <ol>
      ${shown.map((step) => html`<${Scene} key=${step.seq} step=${step} began=${store.began} run=${store.run} />`)}
    </ol>
    <div aria-live="polite">
      ${Object.entries(speech).filter(([, text]) => text).map(([agent, text]) => html`<div class="scene live" key=${agent}>
        <${Face} name=${agent} />
        <div><p class="scene-head"><b>${agent}</b> <span class="soft">is speaking</span></p><p class="text">${text}<span class="caret"></span></p></div>
      </div>`)}
    </div>
  </div>`;
}

function Scene({ step, began, run }) {
  const who = step.who || (step.event === "run.started" ? "run" : "machine");
  const cost = spent(step.usage);
  const asks = step.wanted.filter((wanted) => wanted.kind === "ask.person");
  const children = step.wanted.filter((wanted) => wanted.child);
  const others = step.wanted.filter((wanted) => !["ask.person", "send", "cancel.send"].includes(wanted.kind) && !wanted.child && wanted.who);
  const text = step.event === "run.started" ? "" : step.text;
  return html`<li class="scene ${step.ignored ? "ignored" : ""}" id="step-${step.seq}">
    <${Face} name=${who} />
    <div>
      <p class="scene-head">
        <b>${sentence(step)}</b>
        <span class="spread"></span>
        <span class="soft small" title="step ${step.seq}">${clock(step.at)}${cost && ` · ${cost}`}</span>
      </p>
      ${text && html`<p class="said"><${Fold} text=${text} /></p>`}
      ${step.note && step.note !== text && html`<p class="soft">${step.note}</p>`}
      ${step.choices.map((choice) => html`<${Chosen} choice=${choice} />`)}
      ${asks.map((asked) => html`<p class="then">asks ${asked.who}: <q><${Fold} text=${asked.text} most=${240} /></q></p>`)}
      ${others.length > 0 && html`<p class="then soft">next: ${others.map((wanted) => `${wanted.who}${wanted.denied ? " (no budget left)" : ""}`).join(", ")}</p>`}
      ${children.map((wanted) => html`<p class="then">starts <${Link} to=${runLink(wanted.child)}>${wanted.who}<//></p>`)}
    </div>
  </li>`;
}

// Who was chosen, and who was not.
function Chosen({ choice }) {
  return html`<p class="then">${choice.by && choice.by !== choice.chosen ? `${choice.by} chose` : "chosen:"} <b>${choice.chosen}</b>, not ${choice.losers.map(([who, score]) => `${who}${score ? ` (${score.toFixed(2)})` : ""}`).join(", ")}${choice.why && html` <span class="soft">because ${choice.why}</span>`}</p>`;
}

function sentence(step) {
  const [said, where] = step.sentence.split(" → ");
  return where ? html`${said} <span class="arrow" aria-label="and the run goes to">→</span> <span class="state">${where}</span>` : said;
}

// ---- the timeline

const ROW = 40;

export function Timeline({ store, chosen, choose }) {
  const box = useRef(null);
  const [view, setView] = useState([0, 20]);
  const look = useCallback(() => {
    const top = Math.max(0, Math.floor(box.current.scrollTop / ROW) - 8);
    const count = Math.ceil(box.current.clientHeight / ROW) + 16;
    setView((before) => (before[0] === top && before[1] === count ? before : [top, count]));
    store.need(top, count);
  }, [store]);
  useLayoutEffect(() => {
    if (chosen === null) box.current.scrollTop = store.total * ROW;
    look();
  }, [store.run]);
  useEffect(look, [store.total]);
  useEffect(() => {
    if (chosen === null) return;
    const top = chosen * ROW, pane = box.current;
    if (top < pane.scrollTop || top > pane.scrollTop + pane.clientHeight - ROW) pane.scrollTop = top - pane.clientHeight / 2;
  }, [chosen]);
  const rows = [];
  for (let seq = view[0]; seq < Math.min(store.total, view[0] + view[1]); seq++) rows.push(seq);
  const keys = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    choose(Math.min(store.total - 1, Math.max(0, (chosen ?? store.total - 1) + step)));
  };
  return html`<div>
    <div class="timeline" ref=${box} onScroll=${look} tabindex="0" role="listbox" aria-label="Every step; arrow keys choose one" onKeyDown=${keys} aria-activedescendant=${chosen === null ? undefined : `row-${chosen}`}>
      <div style=${{ height: `${store.total * ROW}px`, position: "relative" }} role="presentation">
        ${rows.map((seq) => html`<${Row} key=${seq} seq=${seq} step=${store.steps.get(seq)} chosen=${chosen === seq} choose=${choose} began=${store.began} />`)}
      </div>
    </div>
    ${chosen === null && html`<p class="soft small">Choose a step to see all of it, and what changed since the time before.</p>`}
    ${chosen !== null && html`<${StepDetail} key=${chosen} run=${store.run} seq=${chosen} />`}
  </div>`;
}

function Row({ seq, step, chosen, choose, began }) {
  return html`<div id="row-${seq}" role="option" aria-selected=${chosen} class="tick ${chosen ? "chosen" : ""} ${step && step.ignored ? "ignored" : ""}" style=${{ top: `${seq * ROW}px` }} onClick=${() => choose(seq)}>
    <span class="figure soft">${seq}</span>
    <span class="figure soft tick-at">${step ? lasting(Math.max(0, step.at - began)) : ""}</span>
    <span class="tick-what">${step ? step.sentence : "…"}${step && step.choices.map((choice) => html` <span class="soft">· not ${choice.losers.map(([who]) => who).join(", ")}</span>`)}</span>
    <span class="soft small tick-cost">${step ? spent(step.usage) : ""}</span>
  </div>`;
}

export function StepDetail({ run, seq }) {
  const { value, error } = useLoaded(() => get(runPath(run, `/steps/${seq}`)), [run, seq]);
  if (error) return html`<${Problem} error=${error} />`;
  if (!value) return html`<p class="soft">…</p>`;
  const { step, entry, again } = value;
  return html`<div class="card detail" aria-label="Step ${seq}">
    <h2>Step ${seq}: ${step.sentence}</h2>
    <dl class="facts-list">
      <dt>event</dt><dd><code>${step.event}</code> ${step.who && `by ${step.who}`}</dd>
      <dt>went</dt><dd>${step.before.join(" + ") || "–"} → ${step.after.join(" + ")}</dd>
      <dt>took</dt><dd>${step.taken.length ? step.taken.map((row) => html`<code>${row}</code> `) : "no transition"}</dd>
      ${step.note && html`<dt>because</dt><dd>${step.note}</dd>`}
      ${spent(step.usage) && html`<dt>cost</dt><dd>${spent(step.usage)}${step.model && ` · ${step.model}`}</dd>`}
    </dl>
    ${step.choices.map((choice) => html`<h3>Decided among ${choice.losers.length + 1}</h3><${Chosen} choice=${choice} />`)}
    ${again.attempts.length > 0 && html`<h3>Attempts before that failed</h3><ol>${again.attempts.map((attempt) => html`<li><span class="soft small">step ${attempt.seq}, ${clock(attempt.at)}</span> ${attempt.why}</li>`)}</ol>`}
    ${step.text && html`<h3>Said</h3><pre class="exact" tabindex="0">${step.text}</pre>`}
    ${step.wanted.length > 0 && html`<h3>Then wanted</h3>${step.wanted.map((wanted) => html`<p><code>${wanted.kind}</code> ${wanted.child ? html`<${Link} to=${runLink(wanted.child)}>${wanted.who}<//>` : wanted.who}${wanted.denied && html` <span class="chip">denied: ${wanted.denied}</span>`}</p>${wanted.text && html`<pre class="exact" tabindex="0">${wanted.text}</pre>`}`)}`}
    ${again.differences.map((found) => html`<h3>${found.who} ${found.what === "asked" ? "is asked again" : "said"}: what changed since step ${found.seq}</h3><${Changes} lines=${found.lines} />`)}
    <details class="more"><summary>The entry as it stands in the journal</summary><pre class="exact" tabindex="0">${JSON.stringify(entry, null, 1)}</pre></details>
  </div>`;
}

function Changes({ lines }) {
  if (!lines.length) return html`<p class="soft">Nothing: it is word for word the same.</p>`;
  return html`<pre class="exact" tabindex="0">${lines.map((line) => html`<span class=${{ "-": "removed", "+": "added" }[line[0]] || ""}>${`${line}\n`}</span>`)}</pre>`;
}
