// Questions that wait for a person: what is asked, whole, and the ways to answer it. What is answered keeps its place, so
// that no other question slides under the pointer, and what has just come or moved takes no click for a moment.
import { html, useEffect, useLayoutEffect, useRef, useState, Problem, SchemaForm, plainSchema, until, ago, Link, runLink } from "./parts.js";
import { post, runPath } from "./api.js";

const MOMENT = 500;
const nameOf = (asked) => `${asked.run} ${asked.question}`;

// The questions in the order in which they came; `ended` says of those that are over what became of them, and how high they were.
export function Questions({ asked, readOnly, within = false, answered }) {
  const box = useRef(null), placed = useRef([]), left = useRef("");
  const [ended, setEnded] = useState({});
  const open = new Map(asked.map((question) => [nameOf(question), question]));
  const known = new Set(placed.current.map(nameOf));
  const shown = [...placed.current.map((question) => open.get(nameOf(question)) || question), ...asked.filter((question) => !known.has(nameOf(question)))];
  placed.current = shown;
  const isOver = (question) => {
    const end = ended[nameOf(question)];
    return !!end && (!!end.told || !open.has(nameOf(question)));
  };
  const end = (question, told) => {
    const { height } = cardOf(box.current, question).getBoundingClientRect();
    setEnded((before) => ({ ...before, [nameOf(question)]: { told, height } }));
  };
  useLayoutEffect(() => {
    const gone = shown.find((question) => !open.has(nameOf(question)) && !isOver(question));
    if (gone) end(gone, "");
  });
  useGuard(box);
  useEffect(() => {
    if (!left.current) return;
    const at = shown.findIndex((question) => nameOf(question) === left.current);
    const next = [...shown.slice(at + 1), ...shown.slice(0, at)].find((question) => !isOver(question)) || shown[at];
    left.current = "";
    const card = cardOf(box.current, next);
    card.focus({ preventScroll: true });
    if (card.matches(":focus-visible")) card.scrollIntoView({ block: "nearest" }); // at the keyboard no pointer is led astray
  }, [ended]);
  const done = (question, told) => {
    left.current = nameOf(question);
    end(question, told);
    answered(question);
  };
  const hide = () => {
    placed.current = shown.filter((question) => !isOver(question));
    setEnded({});
  };
  return html`<div class="stack questions" ref=${box}>
      ${shown.map((question) => (isOver(question) ? html`<${Ended} key=${nameOf(question)} asked=${question} within=${within} ...${ended[nameOf(question)]} />` : html`<${Question} key=${nameOf(question)} asked=${question} readOnly=${readOnly} within=${within} done=${done} />`))}
    </div>
    ${shown.some(isOver) && html`<p class="below"><button class="quiet" onClick=${hide}>Hide what is answered</button></p>`}`;
}

const cardOf = (box, asked) => [...box.children].find((card) => card.dataset.question === nameOf(asked));

// Whatever lies under the pointer was there for a moment before it can be clicked: a click that comes sooner was meant for something else.
export function useGuard(box) {
  const places = useRef(new WeakMap());
  const look = () => {
    for (const card of box.current ? box.current.children : []) {
      const known = places.current.get(card), top = card.offsetTop;
      if (known && known.top === top) continue;
      if (known) clearTimeout(known.timer);
      card.classList.add("settling");
      places.current.set(card, { top, timer: setTimeout(() => card.classList.remove("settling"), MOMENT) });
    }
  };
  useLayoutEffect(look);
  useEffect(() => {
    const observer = new ResizeObserver(look);
    observer.observe(box.current);
    observer.observe(box.current.closest("section") || document.body);
    return () => observer.disconnect();
  }, []);
}

function Ended({ asked, told, height, within }) {
  return html`<article class="card question ended" tabindex="-1" data-question=${nameOf(asked)} style=${{ minHeight: `${height}px` }} aria-label="Question of ${asked.machine}, no longer open">
    <p role="status">${told ? html`Answered: <b>${told}</b>` : "This is no longer asked: it was answered elsewhere, or the run has moved on."}</p>
    <p class="soft small">${!within && html`<${Link} to=${runLink(asked.run)} class="mono">${asked.run}<//> `}${asked.prompt.split("\n")[0].slice(0, 160)}</p>
  </article>`;
}

// A yes or no to which words can be given: it is approved, or goes back with a reason.
const isApproval = (asked) => !!asked.sends_back;

function Question({ asked, readOnly, done, within }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const schema = plainSchema(asked.schema);
  const answer = async (value, told) => {
    setBusy(true);
    setError(null);
    try {
      await post(runPath(asked.run, "/answer"), { value, question: asked.question });
      done(asked, told);
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  const choices = schema.type === "boolean" ? null : Array.isArray(schema.enum) && schema.enum.length <= 6 ? schema.enum : null;
  return html`<article class="card question" tabindex="-1" data-question=${nameOf(asked)} aria-label="Question of ${asked.machine}">
    ${!within && html`<header>
      <span class="eyebrow">${asked.top_machine || asked.machine}${asked.top !== asked.run ? ` › ${asked.machine}` : ""}</span>
      <${Link} to=${runLink(asked.run)} class="mono">${asked.run}<//>
      <span class="spread"></span>
      ${asked.who && html`<span class="chip">for ${asked.who}</span>`}
      ${asked.due && html`<span class="chip ${asked.due - Date.now() / 1000 < 3600 ? "urgent" : ""}" title="deadline">due ${until(asked.due)}</span>`}
    </header>`}
    <${Prompt} text=${asked.prompt} />
    ${within
      ? (asked.due || asked.who) && html`<p class="soft small">${[asked.who && `for ${asked.who}`, asked.due && `due ${until(asked.due)}`].filter(Boolean).join(" · ")}</p>`
      : html`<p class="soft small">asked in <b>${asked.states.join(" + ")}</b>${asked.since ? `, ${ago(asked.since)}` : ""}</p>`}
    ${readOnly
      ? html`<p class="soft">This page is read-only.</p>`
      : isApproval(asked)
        ? html`<${Approval} busy=${busy} answer=${answer} word=${asked.sends_back} />`
        : schema.type === "boolean"
          ? html`<div class="actions">
              <button class="primary" disabled=${busy} onClick=${() => answer(true, "Approve")}>Approve</button>
              <button class="danger" disabled=${busy} onClick=${() => answer(false, "Reject")}>Reject</button>
            </div>`
          : choices
            ? html`<div class="actions">${choices.map((choice) => html`<button disabled=${busy} onClick=${() => answer(choice, String(choice))}>${String(choice)}</button>`)}</div>`
            : html`<${SchemaForm} schema=${schema} submit=${(value) => answer(value, brief(value))} label="Send answer" busy=${busy} whole=${true} />`}
    <${Problem} error=${error} />
  </article>`;
}

const brief = (value) => {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > 120 ? `${text.slice(0, 120)}…` : text;
};

function Approval({ busy, answer, word }) {
  const [reason, setReason] = useState("");
  const [id] = useState(() => `why-${Math.random().toString(36).slice(2)}`);
  const why = reason.trim();
  const rework = (event) => {
    event.preventDefault();
    answer(`${word} ${why}`, `Rework: ${why}`);
  };
  return html`<div class="actions"><button class="primary" disabled=${busy} onClick=${() => answer(true, "Approve")}>Approve</button></div>
    <form class="rework" onSubmit=${rework}>
      <div class="field"><label for=${id}>What has to change<span class="needed"> needed for rework</span></label>
        <textarea id=${id} rows="2" required value=${reason} onInput=${(event) => setReason(event.target.value)}></textarea></div>
      <button class="danger" disabled=${busy}>Rework</button>
    </form>`;
}

// The question, and what it is about. Of several lines the first is the question; what follows, such as arguments, a diff or the content of a file, is shown as it is.
function Prompt({ text }) {
  const lines = text.split("\n");
  const asked = lines.length === 1 && /^([^?]{1,160}\?)\s+(\S.*)$/.exec(text);
  if (asked) return html`<p class="prompt">${asked[1]}</p><blockquote class="thing" aria-label="What it is about">${asked[2]}</blockquote>`;
  if (lines.length === 1 && text.length < 400) return html`<p class="prompt">${text}</p>`;
  const last = lines.length > 2 && lines[lines.length - 1].trim().endsWith("?") ? lines.pop() : "";
  return html`<p class="prompt">${lines[0]}</p>
    ${lines.length > 1 && html`<pre class="exact" tabindex="0" aria-label="What is to be approved">${lines.slice(1).map((line) => html`<span class=${look(line)}>${`${line}\n`}</span>`)}</pre>`}
    ${last && html`<p class="prompt">${last}</p>`}`;
}

const look = (line) => (/^\+(?!\+\+)/.test(line) ? "added" : /^-(?!--)/.test(line) ? "removed" : "");
