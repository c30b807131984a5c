// The page: which view is shown at which address, and what is around it.
import { html, render, useEffect, useState, useLoaded, Link, Problem, go } from "./parts.js";
import { get } from "./api.js";
import { Inbox, useWaiting } from "./inbox.js";
import { Runs } from "./runs.js";
import { Run } from "./run.js";
import { Start } from "./start.js";
import { Check } from "./check.js";
import { Metrics } from "./metrics.js";
import { Compare } from "./compare.js";

const VIEWS = { inbox: ["Inbox", Inbox], runs: ["Runs", Runs], start: ["Start", Start], check: ["Check", Check], metrics: ["Metrics", Metrics], compare: ["Compare", Compare] };
const ICONS = {
  inbox: "M3 13h4l2 3h6l2-3h4M5 5h14l2 8v6H3v-6z",
  runs: "M4 6h16M4 12h16M4 18h10",
  start: "M7 5l11 7-11 7z",
  check: "M4 12l5 5L20 6",
  metrics: "M5 20V10m7 10V4m7 16v-7",
  compare: "M8 5v14M16 5v14M4 9h8M12 15h8",
};

function place() {
  const [, name, run] = location.pathname.split("/");
  return { view: name === "run" ? "run" : VIEWS[name] ? name : "inbox", run: run ? decodeURIComponent(run) : "" };
}

function Page() {
  const [at, setAt] = useState(place);
  const { value: me, error } = useLoaded(() => get("/api/me"), []);
  const inbox = useWaiting(me);
  const waiting = inbox.waiting ? inbox.waiting.length : 0;
  useEffect(() => {
    const moved = () => {
      setAt(place());
      scrollTo(0, 0);
    };
    addEventListener("popstate", moved);
    addEventListener("keydown", press);
    return () => {
      removeEventListener("popstate", moved);
      removeEventListener("keydown", press);
    };
  }, []);
  useEffect(() => {
    const title = at.view === "run" ? at.run : VIEWS[at.view][0];
    document.title = `${waiting ? `(${waiting}) ` : ""}${title} · Moothall`;
  }, [at, waiting]);
  const View = at.view === "run" ? null : VIEWS[at.view][1];
  return html`<a class="skip" href="#main">Skip to the content</a>
    <nav class="side" aria-label="Views">
      <${Link} to="/inbox" class="brand" aria-label="Moothall"><svg viewBox="0 0 32 32" aria-hidden="true"><path d="M4 13 16 5l12 8v2H4zM7 17h3v7H7zm7.5 0h3v7h-3zM22 17h3v7h-3zM4 25h24v2H4z" /></svg><span>Moothall</span><//>
      ${Object.entries(VIEWS).map(([name, [label]]) => html`<${Link} to="/${name}" class="tab ${at.view === name || (name === "runs" && at.view === "run") ? "here" : ""}" aria-current=${at.view === name ? "page" : undefined}>
        <svg viewBox="0 0 24 24" aria-hidden="true"><path d=${ICONS[name]} /></svg><span>${label}</span>${name === "inbox" && waiting > 0 && html`<span class="count" aria-label="${waiting} waiting">${waiting}</span>`}<//>`)}
      <span class="spread"></span>
      ${me && html`<p class="whoami">${me.name}${me.read_only ? " · read-only" : ""}</p>`}
    </nav>
    <main id="main" tabindex="-1">
      <${Problem} error=${error} />
      ${me && (View ? html`<${View} key=${at.view} me=${me} inbox=${inbox} />` : html`<${Run} key=${at.run} run=${at.run} me=${me} />`)}
    </main>`;
}

let before = "";

// `g` and then the first letter of a view; `/` searches.
function press(event) {
  if (event.target.closest("input, textarea, select") || event.metaKey || event.ctrlKey || event.altKey) return;
  if (event.key === "/") {
    event.preventDefault();
    const search = document.getElementById("search");
    if (search) search.focus();
    else go("/runs");
  }
  if (before === "g") {
    const name = Object.keys(VIEWS).find((known) => known.startsWith(event.key));
    if (name) go(`/${name}`);
  }
  before = event.key;
}

render(html`<${Page} />`, document.getElementById("page"));
