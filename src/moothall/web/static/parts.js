// Small parts that every view uses: links, badges, times, money, charts, forms.
import { html, useState, useEffect, useLayoutEffect, useRef, useCallback } from "./vendor/htm-preact-standalone-3.1.1.js";

export * from "./vendor/htm-preact-standalone-3.1.1.js";

export function go(path) {
  history.pushState({}, "", path);
  dispatchEvent(new PopStateEvent("popstate"));
}

export function Link({ to, children, ...rest }) {
  const follow = (event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
    event.preventDefault();
    go(to);
  };
  return html`<a href=${to} onClick=${follow} ...${rest}>${children}</a>`;
}

export const runLink = (run) => `/run/${encodeURIComponent(run)}`;

// How a run stands. What was only rehearsed does not look like something that was done.
export function Badge({ status, model = "" }) {
  const isRehearsal = model === "rehearsal";
  return html`<span class="badge ${status.split(" ")[0]} ${isRehearsal ? "rehearsal" : ""}">${status}</span>${isRehearsal && html`<span class="chip">rehearsal</span>`}`;
}

export function Warnings({ warnings }) {
  return warnings.length ? html`<div class="warnings" role="status"><ul>${warnings.map((warning) => html`<li key=${warning}>${warning}</li>`)}</ul></div>` : null;
}

export function lasting(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86400)} d ${Math.floor((seconds % 86400) / 3600)} h`;
}

const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DATE = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const dated = (format, at) => (Math.abs(at) < 8e12 ? format.format(new Date(at * 1000)) : String(at));
export const clock = (at) => dated(CLOCK, at);
export const date = (at) => dated(DATE, at);

export function ago(at, now = Date.now() / 1000) {
  const seconds = now - at;
  if (seconds < 5) return "just now";
  return seconds < 86400 * 14 ? `${lasting(seconds)} ago` : date(at);
}

export function until(at, now = Date.now() / 1000) {
  return at > now ? `in ${lasting(at - now)}` : "overdue";
}

export function amount(name, value) {
  if (value === null || value === undefined) return "unknown";
  if (name === "usd") return `$${value.toFixed(value && value < 0.1 ? 4 : 2)}`;
  return value >= 10000 ? value.toLocaleString("en") : String(Math.round(value * 10) / 10);
}

export function spent(amounts) {
  return ["usd", "tokens", "calls"]
    .filter((name) => amounts && amounts[name])
    .map((name) => (name === "usd" ? amount(name, amounts.usd) : `${amount(name, amounts[name])} ${name}`))
    .join(" · ");
}

// Load something, and again whenever one of the keys changes or `again` is called.
export function useLoaded(load, keys) {
  const [state, set] = useState({ value: null, error: null, busy: true });
  const turn = useRef(0);
  const again = useCallback(() => {
    const mine = ++turn.current;
    return load().then(
      (value) => mine === turn.current && set({ value, error: null, busy: false }),
      (error) => mine === turn.current && set((before) => ({ value: before.value, error, busy: false })),
    );
  }, keys);
  useEffect(() => {
    set((before) => ({ ...before, busy: true }));
    again();
    return () => void turn.current++;
  }, keys);
  return { ...state, again };
}

export function useEvery(seconds, task, keys = []) {
  useEffect(() => {
    const timer = setInterval(() => document.hidden || task(), seconds * 1000);
    return () => clearInterval(timer);
  }, keys);
}

export function Problem({ error }) {
  return error ? html`<p class="problem" role="alert">${error.message || String(error)}</p>` : null;
}

export function Empty({ title, children }) {
  return html`<div class="empty"><p class="empty-title">${title}</p><p>${children}</p></div>`;
}

export function Bars({ title, bars, whole = 0 }) {
  const most = Math.max(...bars.map((bar) => bar.value), whole, 1e-9);
  if (!bars.length) return null;
  return html`<figure class="bars">
    ${title && html`<figcaption>${title}</figcaption>`}
    ${bars.slice(0, 24).map(
      (bar) => html`<div class="bar" title="${bar.name}: ${bar.told}">
        <span class="bar-name">${bar.name}</span>
        <span class="bar-track">
          <span class="bar-fill" style=${{ width: `${Math.max(0.5, (100 * bar.value) / most)}%` }}>
            ${bar.other ? html`<span class="bar-other" style=${{ width: `${Math.min(100, (100 * bar.other) / bar.value)}%` }}></span>` : null}
          </span>
        </span>
        <span class="bar-told">${bar.told}</span>
      </div>`,
    )}
    ${bars.length > 24 && html`<p class="soft">${bars.length - 24} more</p>`}
  </figure>`;
}

export function Table({ head, rows, caption }) {
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${caption || head[0] || "table"}>
    <table>
      <thead><tr>${head.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
      <tbody>${rows.map((row) => html`<tr>${row.map((cell, at) => html`<td class=${at && isFigure(cell) ? "figure" : ""}>${cell}</td>`)}</tr>`)}</tbody>
    </table>
  </div>`;
}

const isFigure = (cell) => typeof cell === "number" || /^[≥$]?\s?[\d.,]+( (ms|s|min|h|d|%).*)?$/.test(String(cell));

// A long text: its beginning, and the rest behind a click.
export function Fold({ text, most = 600 }) {
  const [open, set] = useState(false);
  if (text.length <= most) return html`<span class="text">${text}</span>`;
  return html`<span class="text">${open ? text : `${text.slice(0, most)}…`}</span>
    <button class="quiet" onClick=${() => set(!open)}>${open ? "Show less" : "Show all"}</button>`;
}

// Asks before something that cannot be taken back. Escape and the first button leave things as they are.
export function Confirm({ title, children, yes, no, go, close }) {
  const box = useRef(null);
  useLayoutEffect(() => box.current.showModal(), []);
  return html`<dialog ref=${box} class="card confirm" aria-label=${title} onClose=${close}>
    <h2>${title}</h2>
    <p>${children}</p>
    <div class="actions"><button autofocus onClick=${close}>${no}</button><button class="danger" onClick=${() => (close(), go())}>${yes}</button></div>
  </dialog>`;
}

// ---- forms made of a schema

const scalar = (schema) => ["string", "number", "integer", "boolean"].includes(schema.type) || Array.isArray(schema.enum);

export function plainSchema(schema) {
  if (schema && Array.isArray(schema.anyOf)) {
    const others = schema.anyOf.filter((inner) => inner.type !== "null");
    if (others.length === 1) return { ...others[0], optional: true, title: schema.title, description: schema.description };
  }
  return schema || {};
}

const spoken = (name) => (name.charAt(0).toUpperCase() + name.slice(1)).replace(/[_-]+/g, " ");

export function Field({ name, schema, value, onChange, required, id, unset }) {
  const known = plainSchema(schema);
  const label = known.title && known.type !== "object" ? known.title : spoken(name);
  const help = known.description || (known.earlier !== undefined ? `earlier: ${JSON.stringify(known.earlier)}` : "");
  const about = help ? { "aria-describedby": `${id}-help` } : {};
  let input;
  if (Array.isArray(known.enum)) {
    input = html`<select id=${id} value=${value ?? ""} required=${required} ...${about} onChange=${(event) => onChange(known.enum.find((choice) => String(choice) === event.target.value))}>
      <option value="">${required ? "Choose…" : unset}</option>
      ${known.enum.map((choice) => html`<option value=${String(choice)}>${String(choice)}</option>`)}
    </select>`;
  } else if (known.type === "boolean") {
    const choices = [["Yes", true], ["No", false], ...(required ? [] : [[unset, undefined]])];
    return html`<fieldset class="field" ...${about}>
      <legend>${label}${required ? html`<span class="needed"> needed</span>` : null}</legend>
      <div class="either">${choices.map(([word, choice]) => html`<label class="check"><input type="radio" name=${id} required=${required} checked=${value === choice} onChange=${() => onChange(choice)} /> ${word}</label>`)}</div>
      ${help && html`<p class="help" id="${id}-help">${help}</p>`}
    </fieldset>`;
  } else if (known.type === "number" || known.type === "integer") {
    input = html`<input id=${id} type="number" step=${known.type === "integer" ? 1 : "any"} min=${known.minimum} max=${known.maximum} placeholder=${known.default ?? ""} required=${required} value=${value ?? ""} ...${about}
      onInput=${(event) => onChange(event.target.value === "" ? undefined : Number(event.target.value))} />`;
  } else if (known.type === "string" && (known.format === "path" || (known.format !== "text" && !required))) {
    input = html`<input id=${id} type="text" required=${required} value=${value ?? ""} ...${about} onInput=${(event) => onChange(event.target.value || undefined)} />`;
  } else if (known.type === "string") {
    input = html`<textarea id=${id} rows="3" required=${required} value=${value ?? ""} ...${about} onInput=${(event) => onChange(event.target.value || undefined)}></textarea>`;
  } else {
    input = html`<${JsonField} id=${id} value=${value} onChange=${onChange} required=${required} />`;
  }
  return html`<div class="field">
    <label for=${id}>${label}${required ? html`<span class="needed"> needed</span>` : null}</label>
    ${input}
    ${help && html`<p class="help" id="${id}-help">${help}${known.asked_by ? ` (${known.asked_by})` : ""}</p>`}
  </div>`;
}

function JsonField({ id, value, onChange, required }) {
  const [text, set] = useState(value === undefined ? "" : JSON.stringify(value, null, 1));
  const [wrong, setWrong] = useState(false);
  const typed = (event) => {
    set(event.target.value);
    try {
      onChange(event.target.value.trim() ? JSON.parse(event.target.value) : undefined);
      setWrong(false);
    } catch {
      setWrong(true);
    }
  };
  return html`<textarea id=${id} class="code" rows="3" required=${required} value=${text} onInput=${typed} placeholder="JSON" aria-invalid=${wrong}></textarea>
    ${wrong && html`<p class="help">This is not JSON yet.</p>`}`;
}

let forms = 0;

// Where several types are allowed, what is JSON counts as that, and all else as a text.
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

// Where `whole` is said, every field is in sight; else those that are needed or explained are, and the rest is folded away.
export function SchemaForm({ schema, submit, label, busy, children, whole = false, changed = () => {} }) {
  const known = plainSchema(schema);
  const [value, set] = useState(undefined);
  const [number] = useState(() => ++forms);
  const unset = whole ? "No answer" : "As it is set";
  useEffect(() => changed(value), [value]);
  const isObject = known.type === "object" && known.properties;
  const send = (event) => {
    event.preventDefault();
    submit(isObject ? value || {} : known.anyOf ? parsed(value) : value);
  };
  if (!isObject) {
    const isEmpty = !known.type && !known.enum;
    return html`<form onSubmit=${send}>
      <${Field} id="f${number}" name=${known.title || (whole ? "answer" : "input")} schema=${isEmpty ? { type: "string", ...known } : known} value=${value} onChange=${set} required=${!isEmpty} unset=${unset} />
      ${children}
      <button class="primary" disabled=${busy}>${label}</button>
    </form>`;
  }
  const required = new Set(known.required || []);
  const fields = Object.entries(known.properties);
  const first = fields.filter(([name, inner]) => whole || required.has(name) || plainSchema(inner).description);
  const more = fields.filter(([name, inner]) => !first.some(([other]) => other === name) && scalar(plainSchema(inner)));
  const draw = ([name, inner]) => html`<${Field} key=${name} id="f${number}-${name}" name=${name} schema=${inner} value=${(value || {})[name]} required=${required.has(name)} unset=${unset}
    onChange=${(changed) => set((before) => {
      const next = { ...before };
      if (changed === undefined) delete next[name];
      else next[name] = changed;
      return next;
    })} />`;
  return html`<form onSubmit=${send}>
    ${first.map(draw)}
    ${more.length > 0 && html`<details class="more"><summary>More settings</summary>${more.map(draw)}</details>`}
    ${children}
    <button class="primary" disabled=${busy}>${label}</button>
  </form>`;
}
