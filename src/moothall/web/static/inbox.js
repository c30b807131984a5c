// Everything that waits for a person, across runs and machines.
import { html, useEffect, useRef, useState, useEvery, Empty, Problem, Link, go, runLink } from "./parts.js";
import { get } from "./api.js";
import { Questions } from "./questions.js";

const nameOf = (asked) => `${asked.run} ${asked.question}`;
const isFor = (asked, me) => !asked.who || asked.who === me.name;
const mayNotify = () => "Notification" in window && Notification.permission === "granted";

// What waits, looked for all the time; in a tab that nobody sees only where a notification tells of it.
export function useWaiting(me) {
  const [waiting, setWaiting] = useState(null);
  const [error, setError] = useState(null);
  const known = useRef(null);
  const look = () =>
    get("/api/inbox").then((found) => {
      setError(null);
      setWaiting((before) => (JSON.stringify(before) === JSON.stringify(found) ? before : found));
    }, setError);
  useEffect(() => {
    look();
    const timer = setInterval(() => (document.hidden && !mayNotify()) || look(), 2000);
    return () => clearInterval(timer);
  }, []);
  useEffect(() => {
    if (!waiting || !me) return;
    const before = known.current;
    known.current = new Set(waiting.map(nameOf));
    if (!before || !document.hidden || !mayNotify()) return;
    for (const asked of waiting) if (!before.has(nameOf(asked)) && isFor(asked, me)) notify(asked);
  }, [waiting, me]);
  return { waiting, error, look };
}

function notify(asked) {
  const note = new Notification(`${asked.machine} asks`, { body: asked.prompt.slice(0, 200), tag: nameOf(asked) });
  note.onclick = () => {
    focus();
    go(runLink(asked.run));
  };
}

export function Inbox({ me, inbox }) {
  const [mine, setMine] = useState(false);
  const [, tick] = useState(0);
  useEvery(5, () => tick((count) => count + 1));
  const shown = inbox.waiting && inbox.waiting.filter((asked) => !mine || isFor(asked, me));
  return html`<section>
    <div class="title-row">
      <h1>Inbox</h1>
      <span class="spread"></span>
      <label class="check"><input type="checkbox" checked=${mine} onChange=${() => setMine(!mine)} /> only what I may answer</label>
      <${Notify} />
    </div>
    <p class="lead">What waits for a person. A run goes on as soon as you answer.</p>
    ${shown && html`<${Questions} key=${mine} asked=${shown} readOnly=${me.read_only} answered=${inbox.look} />`}
    ${shown && !shown.length && html`<${Empty} title="Nothing waits for you">Runs ask here when they need a decision. <${Link} to="/start">Start one<//>.<//>`}
    <div class="afloat"><${Problem} error=${inbox.error} /></div>
  </section>`;
}

function Notify() {
  const [allowed, set] = useState(() => ("Notification" in window ? Notification.permission : "denied"));
  if (allowed === "granted") return html`<span class="soft small">You are notified when this tab is hidden.</span>`;
  if (allowed !== "default") return null;
  return html`<button class="quiet" onClick=${async () => set(await Notification.requestPermission())}>Notify me</button>`;
}
