// A question that waits for a person: what is asked, whole, and the ways to answer it.
import { html, useState, Problem, SchemaForm, plainSchema, until, ago, Link, runLink } from "./parts.js";
import { post, runPath } from "./api.js";

export function Question({ asked, readOnly, done, within = false }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const schema = plainSchema(asked.schema);
  const answer = async (value) => {
    setBusy(true);
    setError(null);
    try {
      await post(runPath(asked.run, "/answer"), { value, question: asked.question });
      done(asked);
    } catch (problem) {
      setError(problem);
    }
    setBusy(false);
  };
  const choices = schema.type === "boolean" ? null : Array.isArray(schema.enum) && schema.enum.length <= 6 ? schema.enum : null;
  return html`<article class="card question" aria-label="Question of ${asked.machine}">
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
      : schema.type === "boolean"
        ? html`<div class="actions">
            <button class="primary" disabled=${busy} onClick=${() => answer(true)}>Approve</button>
            <button class="danger" disabled=${busy} onClick=${() => answer(false)}>Reject</button>
          </div>`
        : choices
          ? html`<div class="actions">${choices.map((choice) => html`<button disabled=${busy} onClick=${() => answer(choice)}>${String(choice)}</button>`)}</div>`
          : html`<${SchemaForm} schema=${schema} submit=${answer} label="Send answer" busy=${busy} />`}
    <${Problem} error=${error} />
  </article>`;
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
