// Everything that waits for a person, across runs and machines.
import { html, useEffect, useRef, useState, useEvery, useLoaded, Empty, Problem, Link, runLink } from "./parts.js";
import { get } from "./api.js";
import { Question } from "./questions.js";

export function Inbox({ me, counted }) {
  const [mine, setMine] = useState(false);
  const [answered, setAnswered] = useState("");
  const { value, error, again } = useLoaded(() => get("/api/inbox", { mine }), [mine]);
  useEvery(2, again, [mine]);
  useEffect(() => value && counted(value.length), [value && value.length]);
  return html`<section>
    <div class="title-row">
      <h1>Inbox</h1>
      <span class="spread"></span>
      <label class="check"><input type="checkbox" checked=${mine} onChange=${() => setMine(!mine)} /> only what I may answer</label>
      <${Notify} waiting=${value} />
    </div>
    <p class="lead">What waits for a person. A run goes on as soon as you answer.</p>
    <${Problem} error=${error} />
    ${answered && html`<p role="status" class="verdict right">Your answer is kept. <${Link} to=${runLink(answered)}>${answered}<//> goes on.</p>`}
    ${value && !value.length && html`<${Empty} title="Nothing waits for you">Runs ask here when they need a decision. <${Link} to="/start">Start one<//>.<//>`}
    <div class="stack">
      ${(value || []).map((asked) => html`<${Question} key=${asked.run + asked.question} asked=${asked} readOnly=${me.read_only} done=${(asked) => (setAnswered(asked.run), again())} />`)}
    </div>
  </section>`;
}

function Notify({ waiting }) {
  const [allowed, set] = useState(() => ("Notification" in window ? Notification.permission : "denied"));
  const known = useRef(null);
  useEffect(() => {
    if (!waiting) return;
    const before = known.current;
    known.current = new Set(waiting.map((asked) => asked.run + asked.question));
    if (!before || allowed !== "granted" || !document.hidden) return;
    for (const asked of waiting) {
      if (!before.has(asked.run + asked.question)) new Notification(`${asked.machine} asks`, { body: asked.prompt.slice(0, 200), tag: asked.run });
    }
  }, [waiting]);
  if (allowed !== "default") return null;
  return html`<button class="quiet" onClick=${async () => set(await Notification.requestPermission())}>Notify me</button>`;
}
