// The runs of the store: searched, filtered, the newest first, a page at a time.
import { html, useState, useEffect, useEvery, useLoaded, Badge, Empty, Problem, Link, runLink, ago, spent, go } from "./parts.js";
import { get } from "./api.js";

const PAGE = 50;

export function Runs() {
  const [wish, setWish] = useState(() => Object.fromEntries(new URLSearchParams(location.search)));
  const [start, setStart] = useState(0);
  const key = JSON.stringify(wish);
  const { value, error, again } = useLoaded(() => get("/api/runs", { ...wish, start, limit: PAGE }), [key, start]);
  useEvery(2, again, [key, start]);
  const change = (name, chosen) => {
    const next = { ...wish, [name]: chosen };
    if (!chosen) delete next[name];
    setStart(0);
    setWish(next);
    const search = new URLSearchParams(next).toString();
    history.replaceState({}, "", search ? `/runs?${search}` : "/runs");
  };
  const pick = (name, label, choices) => html`<label class="filter"><span>${label}</span>
    <select value=${wish[name] || ""} onChange=${(event) => change(name, event.target.value)}>
      <option value="">all</option>
      ${(choices || []).map((choice) => html`<option value=${choice}>${choice}</option>`)}
    </select></label>`;
  return html`<section>
    <div class="title-row"><h1>Runs</h1><span class="spread"></span><${Link} to="/start" class="button primary">Start a run<//></div>
    <div class="filters" role="search">
      <label class="filter grow"><span>Search</span><input id="search" type="search" placeholder="a run, a machine, a state…" value=${wish.search || ""} onInput=${(event) => change("search", event.target.value)} /></label>
      ${pick("status", "Status", value && value.statuses)}
      ${pick("machine", "Machine", value && value.machines)}
      ${value && value.projects.length > 0 && pick("project", "Project", value.projects)}
      <label class="check"><input type="checkbox" checked=${!!wish.mine} onChange=${() => change("mine", wish.mine ? "" : "true")} /> waiting for me</label>
      <label class="check"><input type="checkbox" checked=${!!wish.children} onChange=${() => change("children", wish.children ? "" : "true")} /> children</label>
    </div>
    <${Problem} error=${error} />
    ${value && !value.runs.length && html`<${Empty} title="No runs here">${Object.keys(wish).length ? "Nothing fits these filters." : html`<${Link} to="/start">Start the first one<//>, or use <code>moot run</code>.`}<//>`}
    ${value && value.runs.length > 0 && html`<div class="list" role="list">
      ${value.runs.map(({ summary, parent, at }) => html`<a role="listitem" class="row" key=${summary.run} href=${runLink(summary.run)} onClick=${(event) => {
        if (event.metaKey || event.ctrlKey) return;
        event.preventDefault();
        go(runLink(summary.run));
      }}>
        <span class="stands"><${Badge} status=${summary.status} model=${summary.model} /></span>
        <span class="row-name"><span class="mono">${summary.run}</span>${parent && html`<span class="soft small"> child of ${parent}</span>`}<span class="soft small row-where">${summary.machine} · in ${summary.states.join(" + ") || "?"}${summary.reason ? ` · ${summary.reason.slice(0, 80)}` : ""}</span></span>
        <span class="soft small row-spent">${spent(summary.spent)}</span>
        <span class="soft small row-when">${ago(at)}</span>
      </a>`)}
    </div>
    ${value.total > PAGE && html`<nav class="pager" aria-label="Pages">
      <button disabled=${!start} onClick=${() => setStart(Math.max(0, start - PAGE))}>Newer</button>
      <span class="soft">${start + 1}–${Math.min(start + PAGE, value.total)} of ${value.total}</span>
      <button disabled=${start + PAGE >= value.total} onClick=${() => setStart(start + PAGE)}>Older</button>
    </nav>`}`}
  </section>`;
}
