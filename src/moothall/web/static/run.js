// One run: its story, its diagram live, its timeline, what it cost, its past at any step, and what can be done with it.
import { html, useCallback, useEffect, useMemo, useRef, useState, useLoaded, useEvery, Badge, Bars, Confirm, Link, Problem, Table, Warnings, ago, amount, date, go, lasting, runLink, spent } from "./parts.js";
import { follow, get, post, runPath } from "./api.js";
import { Picture } from "./picture.js";
import { Story, Timeline } from "./steps.js";
import { Sections, Talk } from "./sections.js";
import { Questions } from "./questions.js";

const WINDOW = 100, MOST = 400;

// The steps of a run as far as they were looked at, and how many there are.
class Steps {
  constructor(run, began, total, changed) {
    Object.assign(this, { run, began, total, changed, steps: new Map(), asked: new Set(), from: Math.max(0, total - WINDOW) });
  }
  add(step) {
    this.steps.set(step.seq, step);
    this.total = Math.max(this.total, step.seq + 1);
    if (this.total - this.from > MOST) this.from = this.total - MOST / 2;
  }
  async load(start, limit = WINDOW) {
    if (this.asked.has(start)) return;
    this.asked.add(start);
    try {
      const { steps, total } = await get(runPath(this.run, "/steps"), { start, limit });
      this.total = Math.max(this.total, total);
      for (const step of steps) this.steps.set(step.seq, step);
    } catch {
      this.asked.delete(start);
    }
    this.changed();
  }
  need(top, count) {
    for (let start = Math.floor(top / WINDOW) * WINDOW; start < Math.min(this.total, top + count); start += WINDOW) {
      for (let seq = start; seq < Math.min(start + WINDOW, this.total); seq++) {
        if (!this.steps.has(seq)) {
          this.load(start);
          break;
        }
      }
    }
  }
  latest() {
    const found = [];
    for (let seq = this.from; seq < this.total; seq++) if (this.steps.has(seq)) found.push(this.steps.get(seq));
    return found;
  }
  earlier = () => {
    this.from = Math.max(0, this.from - WINDOW);
    this.load(this.from);
    this.changed();
  };
}

export function Run({ run, me }) {
  const [, draw] = useState(0);
  const changed = useCallback(() => draw((count) => count + 1), []);
  const [detail, setDetail] = useState(null);
  const [error, setError] = useState(null);
  const [drawn, setDrawn] = useState(null);
  const [undrawn, setUndrawn] = useState(null);
  const [figures, setFigures] = useState(null);
  const [connection, setConnection] = useState("");
  const [speech, setSpeech] = useState({});
  const [moment, setMoment] = useState(null);
  const [chosen, setChosen] = useState(null);
  const [tab, setTab] = useState(() => location.hash.slice(1) || "story");
  const [trial, setTrial] = useState(0);
  const steps = useRef(null);
  const figured = useRef({ timer: null, at: 0 });
  const stood = useRef(null), awaited = useRef(null);

  const refigure = useCallback(() => {
    const pause = 1200 + (steps.current ? steps.current.total / 2 : 0);
    const wait = Math.max(0, pause - (Date.now() - figured.current.at));
    if (figured.current.timer) return;
    figured.current.timer = setTimeout(() => {
      figured.current = { timer: null, at: Date.now() };
      get(runPath(run, "/figures")).then(setFigures, () => {});
    }, wait);
  }, [run]);
  const redetail = useCallback(() => get(runPath(run)).then((found) => (setDetail((known) => newer(known, found)), found), setError), [run]);
  const later = useCallback(() => {
    awaited.current = awaited.current || setTimeout(() => ((awaited.current = null), redetail()), 2000);
  }, [run]);

  useEffect(() => {
    let stop = () => {}, gone = false;
    setDetail(null), setError(null), setDrawn(null), setFigures(null), setSpeech({}), setMoment(null), setChosen(null);
    document.title = `${run} · Moothall`;
    (async () => {
      const found = await redetail();
      if (gone || !found) return;
      const total = found.summary.seq + 1;
      steps.current = new Steps(run, found.began, total, changed);
      await steps.current.load(Math.max(0, total - WINDOW));
      if (gone) return;
      get(runPath(run, "/picture")).then((shown) => gone || setDrawn(shown), (problem) => gone || setUndrawn(problem));
      figured.current.at = 0;
      refigure();
      stop = follow(run, steps.current.total - 1, (name, news) => {
        if (name === "step") {
          steps.current.add(news);
          if (news.who) setSpeech(({ [news.who]: said, ...others }) => others);
          refigure();
          changed();
        } else if (name === "stands") {
          const before = stood.current;
          stood.current = news;
          setDetail((known) => known && { ...known, summary: news });
          if (!before || before.status !== news.status || before.questions.length !== news.questions.length) redetail();
          else later();
        } else if (name === "speech") {
          setSpeech((before) => ({ ...before, [news.agent]: (news.anew ? "" : before[news.agent] || "") + news.text }));
        } else if (name === "over") {
          setConnection("");
          setSpeech({});
          redetail();
          refigure();
        } else if (name === "connected") setConnection("");
        else if (name === "lost") setConnection("lost");
        else if (name === "trouble") setError(news);
      });
    })();
    return () => {
      gone = true;
      stop();
      clearTimeout(figured.current.timer);
      clearTimeout(awaited.current);
      figured.current.timer = awaited.current = stood.current = null;
    };
  }, [run, trial]);

  useEffect(() => {
    const moved = () => setTab(location.hash.slice(1) || "story");
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);

  // time travel
  const travel = useRef(null);
  const choose = useCallback((seq) => {
    setChosen(seq);
    clearTimeout(travel.current);
    if (seq === null) return setMoment(null);
    travel.current = setTimeout(() => get(runPath(run, `/at/${seq}`)).then(setMoment, setError), 60);
  }, [run]);

  if (error && !detail) return html`<section><h1>${run}</h1><${Problem} error=${error} /></section>`;
  if (!detail || !steps.current) return html`<section><h1 class="mono">${run}</h1><p class="soft">…</p></section>`;
  const { summary } = detail;
  const isLive = ["running", "waiting", "stuck"].includes(summary.status);
  const last = steps.current.steps.get(steps.current.total - 1);
  const active = moment ? moment.states : last && last.seq >= summary.seq ? last.after : summary.states;
  const isMoving = isLive && detail.children.some(isUnderWay);
  const stateFigures = figures ? Object.fromEntries(figures.metrics.states.map((state) => [state.state, state])) : {};
  const visits = moment ? moment.visits : Object.fromEntries(Object.entries(stateFigures).map(([name, state]) => [name, state.visits]));
  const bills = moment ? moment.costs.by_state : stateFigures;
  const costs = Object.fromEntries(Object.entries(bills).map(([name, bill]) => [name, bill.usd ? amount("usd", bill.usd) : bill.tokens ? `${short(bill.tokens)} tok` : ""]));
  const sections = (figures && figures.sections) || [];
  const tabs = { story: "Story", timeline: "Timeline", ...(sections.length ? { machine: summary.machine.split("-")[0] } : {}), figures: "Figures", data: "Data" };
  const show = (name) => {
    setTab(name);
    history.replaceState({}, "", `#${name}`);
  };
  const questions = detail.typed ? summary.questions.filter((question) => question.sends_back) : summary.questions;
  const asked = questions.map((question) => ({ ...question, run, question: question.id, machine: summary.machine, states: summary.states }));
  const restart = () => setTrial((count) => count + 1);
  return html`<section class="run">
    <header class="run-head">
      <div class="title-row">
        <h1 class="mono">${summary.run}</h1>
        <${Badge} status=${summary.status} model=${summary.model} />
        ${connection === "lost" && html`<span class="chip urgent" role="status">connection lost, trying again…</span>`}
        <span class="spread"></span>
        <${Deeds} detail=${detail} me=${me} restart=${restart} at=${chosen} />
      </div>
      <p class="lead">${summary.machine} · began ${date(detail.began)} · in <b>${active.join(" + ")}</b>
        ${detail.parent && html` · child of <${Link} to=${runLink(detail.parent)}>${detail.parent}<//>`}
        ${detail.origin && html` · forked from <${Link} to=${runLink(detail.origin)}>${detail.origin}<//> after step ${detail.shared}`}
        ${summary.model && html` · ${shortModel(summary.model)}`}</p>
      ${summary.reason && html`<p class="reason">${summary.reason}</p>`}
      <${Warnings} warnings=${detail.warnings} />
      <${Facts} detail=${detail} figures=${figures} total=${steps.current.total} />
    </header>
    <${Problem} error=${error} />
    <${Questions} asked=${isLive ? asked : []} within=${true} readOnly=${me.read_only} answered=${redetail} />
    ${summary.questions.length === 0 && detail.children.filter((child) => child.status === "waiting").map((child) => html`<p class="card question">It waits for an answer in <${Link} to=${runLink(child.run)}>${child.machine}<//>, which it has started.</p>`)}
    ${(detail.children.length > 0 || detail.forks.length > 0) && html`<div class="family">
      ${detail.children.map((child) => html`<${Link} class="chip kin" to=${runLink(child.run)}><span class="dot ${child.status}"></span>${child.machine}<//>`)}
      ${detail.forks.map((fork) => html`<${Link} class="chip kin" to=${runLink(fork.run)}><span class="dot ${fork.status}"></span>fork ${fork.run}<//><${Link} class="small" to="/compare?left=${run}&right=${fork.run}">compare<//>`)}
    </div>`}
    <div class="run-body">
      <div class="run-main">
        <div class="tabs" role="tablist" onKeyDown=${(event) => turn(event, Object.keys(tabs), tab, show)}>
          ${Object.entries(tabs).map(([name, label]) => html`<button role="tab" id="tab-${name}" aria-selected=${tab === name} tabindex=${tab === name ? 0 : -1} aria-controls="panel" onClick=${() => show(name)}>${label}</button>`)}
        </div>
        <div role="tabpanel" id="panel" aria-labelledby="tab-${tab}">
          ${tab === "story" && html`${detail.result && !isLive && html`<div class="card result ${summary.status} ${summary.model === "rehearsal" ? "rehearsal" : ""}"><span class="eyebrow">Result</span><pre class="words" tabindex="0">${detail.result}</pre></div>`}${detail.typed && html`<${Conversation} run=${run} sections=${sections} speech=${speech} me=${me} live=${isLive} />`}<${Story} store=${steps.current} speech=${detail.typed ? {} : speech} />`}
          ${tab === "timeline" && html`<${Timeline} store=${steps.current} chosen=${chosen} choose=${choose} />`}
          ${tab === "machine" && html`<${Sections} sections=${sections} />`}
          ${tab === "figures" && (figures ? html`<${Figures} figures=${figures} />` : html`<p class="soft">…</p>`)}
          ${tab === "data" && html`<${Data} run=${run} seq=${chosen ?? steps.current.total - 1} />`}
        </div>
      </div>
      <aside class="run-side" aria-label="State diagram">
        <${Travel} total=${steps.current.total} chosen=${chosen} choose=${choose} run=${run} me=${me} />
        <${Often} task=${isMoving ? redetail : null} />
        ${drawn ? html`<${Picture} drawn=${drawn} active=${active} visits=${visits} costs=${costs} taken=${figures ? figures.taken : null} />` : undrawn ? html`<div class="card"><p class="soft">No picture: ${undrawn.message}</p></div>` : html`<div class="picture-box"></div>`}
        <${Children} kin=${detail.children} />
      </aside>
    </div>
  </section>`;
}

// What was heard meanwhile of how the run stands is newer than an answer that was asked for before.
const newer = (known, found) => (known && known.summary.seq > found.summary.seq ? { ...found, summary: known.summary } : found);

const isUnderWay = (kin) => ["running", "waiting", "stuck"].includes(kin.status);

// What is asked for again and again, as long as there is something to ask for.
function Often({ task }) {
  useEvery(1, () => task && task(), [task]);
  return null;
}

const OPEN = 3;

// The children of a run below its diagram, those under way first, each with its own diagram and its states lit.
function Children({ kin }) {
  const sorted = [...kin].sort((one, other) => isUnderWay(other) - isUnderWay(one));
  return sorted.length > 0 && html`<div class="children"><h2>Inside it</h2>
    ${sorted.map((child, at) => html`<${Child} key=${child.run} child=${child} open=${at < OPEN && isUnderWay(child)} />`)}
  </div>`;
}

function Child({ child, open }) {
  const [isOpen, setOpen] = useState(open);
  const { value, error } = useLoaded(() => (isOpen ? get(runPath(child.run, "/picture")) : Promise.resolve(null)), [child.run, isOpen]);
  return html`<details class="child" open=${isOpen} onToggle=${(event) => setOpen(event.target.open)}>
    <summary><span class="dot ${child.status}"></span><b>${child.machine}</b> <span class="soft small">${child.status} · in ${child.states.join(" + ") || "?"}</span></summary>
    <p class="small"><${Link} to=${runLink(child.run)} class="mono">${child.run}<//></p>
    <${Problem} error=${error} />
    ${value && html`<${Picture} drawn=${value} active=${child.states} label="State diagram of a child" />`}
  </details>`;
}

// A model that is a file is called by its name, and one at an address by its own.
export const shortModel = (model) =>
  model.replace(/@https?:\/\/[^|]*/g, "").replace(/(scripted|cassette):[^|,]*\//g, "$1:");

// Models by their short names; where two have the same, with where they are asked.
export const shortModels = (models) => {
  const short = models.map(shortModel);
  const isTwin = (name) => short.indexOf(name) !== short.lastIndexOf(name);
  return models.map((model, at) => (isTwin(short[at]) ? model.replace(/@https?:\/\/([^/|]*)[^|]*/g, "@$1") : short[at]));
};
const short = (number) => (number >= 1000 ? `${Math.round(number / 100) / 10}k` : String(Math.round(number)));

function turn(event, names, tab, show) {
  const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!by) return;
  const next = names[(names.indexOf(tab) + by + names.length) % names.length];
  show(next);
  requestAnimationFrame(() => document.getElementById(`tab-${next}`)?.focus());
}

function Facts({ detail, figures, total }) {
  const times = figures ? figures.metrics.spent_on : null;
  const limits = detail.summary.limits || {};
  const amounts = detail.summary.spent || {};
  const isUnknown = (name) => name === "usd" && amounts.usd === undefined && amounts.calls > 0;
  const shown = (name) => (isUnknown(name) ? "unknown" : `${name === "usd" && detail.unpriced.length ? "≥ " : ""}${amount(name, amounts[name] || 0)}`);
  return html`<ul class="facts">
    <li><b>${total}</b><span>steps</span></li>
    ${times && html`<li><b>${lasting(times.working)}</b><span>working</span></li><li><b>${lasting(times.waiting)}</b><span>waiting for people</span></li>`}
    ${["usd", "tokens", "calls"].filter((name) => amounts[name] !== undefined || limits[name] !== undefined).map((name) => html`<li><b>${shown(name)}</b><span>${name === "usd" ? "spent" : name}${limits[name] !== undefined ? ` of ${amount(name, limits[name])}` : ""}</span>
      ${limits[name] !== undefined && !isUnknown(name) && html`<span class="meter" role="img" aria-label="${Math.round((100 * (amounts[name] || 0)) / (limits[name] || 1))} % of the budget"><span style=${{ width: `${Math.min(100, (100 * (amounts[name] || 0)) / (limits[name] || 1))}%` }}></span></span>`}</li>`)}
    ${detail.unpriced.length > 0 && html`<li class="small">no price is known for ${shortModels(detail.unpriced).join(", ")}: what it costs does not count towards the budget</li>`}
  </ul>`;
}

function Travel({ total, chosen, choose, run, me }) {
  if (total < 2) return null;
  const at = chosen ?? total - 1;
  const fork = async () => {
    try {
      const forked = await post(runPath(run, "/fork"), { at });
      go(runLink(forked.run));
    } catch (error) {
      alert(error.message);
    }
  };
  return html`<div class="travel ${chosen === null ? "" : "past"}">
    <label for="travel">${chosen === null ? "Now" : html`Step <b>${at}</b> of ${total - 1}`}</label>
    <input id="travel" type="range" min="0" max=${total - 1} value=${at} onInput=${(event) => choose(Number(event.target.value) === total - 1 ? null : Number(event.target.value))} aria-valuetext=${chosen === null ? "now" : `step ${at}`} />
    ${chosen !== null && html`<button class="quiet" onClick=${() => choose(null)}>Back to now</button>`}
    ${chosen !== null && !me.read_only && html`<button onClick=${fork}>Fork from here</button>`}
  </div>`;
}

function Deeds({ detail, me, restart, at }) {
  const { run, status } = detail.summary;
  const [asking, setAsking] = useState(false);
  const [error, setError] = useState(null);
  const act = (path, body, then) => async () => {
    setError(null);
    try {
      then(await post(runPath(run, path), body));
    } catch (problem) {
      setError(problem);
    }
  };
  const isLive = ["running", "waiting", "stuck"].includes(status);
  return html`<div class="deeds">
    ${!me.read_only && isLive && html`<button class="danger" onClick=${() => setAsking(true)}>Cancel</button>`}
    ${asking && html`<${Confirm} title="Cancel this run?" no="Keep it" yes="Cancel the run" go=${act("/cancel", {}, restart)} close=${() => setAsking(false)}>${run} stops where it is, and cannot go on afterwards.<//>`}
    ${!me.read_only && status === "failed" && !detail.summary.ending && html`<button class="primary" onClick=${act("/retry", {}, restart)}>Retry</button>`}
    ${!me.read_only && status === "limited" && html`<${MoreBudget} limits=${detail.summary.limits} retry=${(budget) => act("/retry", { budget }, restart)()} />`}
    <details class="menu"><summary class="button">More</summary><div class="menu-box">
      ${!me.read_only && status === "set" && html`<button onClick=${act("/resume", {}, restart)}>Resume</button>`}
      ${!me.read_only && isLive && html`<button onClick=${act("/fork", at === null ? {} : { at }, (forked) => go(runLink(forked.run)))}>Fork here</button>`}
      <${Link} to="/compare?left=${run}">Compare with another run<//>
      <a href=${runPath(run, "/export")} download>Export the journal (JSON)</a>
      <a href=${runPath(run, "/report?format=html")} download>Report (HTML)</a>
      <a href=${runPath(run, "/report?format=md")} download>Report (Markdown)</a>
      <a href=${runPath(run, "/report?format=csv")} download>Report (CSV)</a>
    </div></details>
    <${Problem} error=${error} />
  </div>`;
}

// A run that used up its budget is tried again with a larger one.
function MoreBudget({ limits, retry }) {
  const [given, setGiven] = useState(() => Object.fromEntries(Object.entries(limits).map(([name, limit]) => [name, String(limit * 2)])));
  const send = (event) => {
    event.preventDefault();
    retry(Object.fromEntries(Object.entries(given).filter(([, limit]) => limit !== "").map(([name, limit]) => [name, Number(limit)])));
  };
  return html`<form class="inline tight" onSubmit=${send}>
    ${Object.keys(limits).map((name) => html`<label class="filter"><span>At most, ${name === "usd" ? "in dollars" : name}</span><input type="number" min="0" step="any" value=${given[name]} onInput=${(event) => setGiven({ ...given, [name]: event.target.value })} /></label>`)}
    <button class="primary">Retry with this</button>
  </form>`;
}

function Conversation({ run, sections, speech, me, live }) {
  const [text, setText] = useState("");
  const [said, setSaid] = useState("");
  const [error, setError] = useState(null);
  const talk = sections.flatMap((section) => section.parts).find((part) => part.kind === "talk");
  const tree = sections.flatMap((section) => section.parts).find((part) => part.kind === "tree");
  const send = async (event) => {
    event.preventDefault();
    if (!text.trim()) return;
    setError(null);
    try {
      setSaid((await post(runPath(run, "/type"), { text })).said);
      setText("");
    } catch (problem) {
      setError(problem);
    }
  };
  return html`<div class="card conversation">
    ${talk ? html`<${Talk} lines=${talk.lines} />` : html`<p class="soft">Nobody has said anything yet.</p>`}
    ${Object.entries(speech).filter(([, words]) => words).map(([agent, words]) => html`<p class="text live" aria-live="polite"><b>${agent}</b> ${words}<span class="caret"></span></p>`)}
    ${live && !me.read_only && html`<form class="typing" onSubmit=${send}>
      <label class="hidden" for="typed">Say something to the team</label>
      <textarea id="typed" rows="2" placeholder="Say something, or !help" value=${text} onInput=${(event) => setText(event.target.value)} onKeyDown=${(event) => event.key === "Enter" && !event.shiftKey && send(event)}></textarea>
      <button class="primary">Send</button>
    </form>`}
    ${said && html`<pre class="words" role="status">${said}</pre>`}
    <${Problem} error=${error} />
    ${tree && html`<details class="more" open><summary>Where it stands</summary><pre class="exact tree" tabindex="0">${tree.text}</pre></details>`}
  </div>`;
}

export function Figures({ figures }) {
  const { metrics, costs } = figures;
  const states = metrics.states.filter((state) => state.state);
  return html`<div class="stack figures">
    <div class="charts">
      <${Bars} title="Time per state" bars=${states.filter((state) => state.total).map((state) => ({ name: state.state, value: state.total, told: lasting(state.total), other: state.waited })).sort((one, other) => other.value - one.value)} />
      <${Bars} title="Tokens per state" bars=${states.filter((state) => state.tokens).map((state) => ({ name: state.state, value: state.tokens, told: amount("tokens", state.tokens) })).sort((one, other) => other.value - one.value)} />
    </div>
    <${Table} head=${["state", "visits", "total", "average", "longest", "waited", "calls", "tokens", "cost"]} rows=${states.map((state) => [state.state + (state.open ? " (now)" : ""), state.visits, lasting(state.total), lasting(state.average), lasting(state.longest), state.waited ? lasting(state.waited) : "", state.calls || "", state.tokens ? amount("tokens", state.tokens) : "", state.usd ? amount("usd", state.usd) : ""])} />
    <h2>Transitions</h2>
    <${Table} head=${["from", "to", "times"]} rows=${metrics.transitions.slice(0, 60).map((way) => [way.from, way.to, way.times])} />
    ${Object.keys(costs.by_agent).length > 0 && html`<h2>Costs</h2>${costs.notes.map((note) => html`<p class="soft small">${note}</p>`)}
      <${Table} head=${["agent", "calls", "tokens", "cost"]} rows=${bills(costs.by_agent)} />
      <${Table} head=${["model", "calls", "tokens", "cost"]} rows=${bills(costs.by_model)} />`}
  </div>`;
}

export const bills = (by) => Object.entries(by).map(([name, bill]) => [name || "–", bill.calls, amount("tokens", bill.tokens), amount("usd", bill.usd)]);

function Data({ run, seq }) {
  const { value, error } = useLoaded(() => get(runPath(run, `/at/${seq}`)), [run, seq]);
  if (error) return html`<${Problem} error=${error} />`;
  if (!value) return html`<p class="soft">…</p>`;
  return html`<p class="soft">What the run knew after step ${seq}.</p>${value.problem ? html`<p>${value.problem}</p>` : html`<pre class="exact" tabindex="0">${JSON.stringify(value.data, null, 2)}</pre>`}`;
}
