// Asking the server, and hearing what happens in a run. Every text that comes back is shown as text.

export class Trouble extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

async function answer(response) {
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new Trouble(body.error || `the server answers ${response.status}`, response.status);
  return body;
}

export async function get(path, query = {}) {
  const chosen = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined && value !== false);
  const search = new URLSearchParams(chosen).toString();
  try {
    return await answer(await fetch(search ? `${path}?${search}` : path));
  } catch (error) {
    if (error instanceof Trouble) throw error;
    throw new Trouble("The server does not answer. Is `moot serve` still running?", 0);
  }
}

export async function post(path, body = {}) {
  try {
    return await answer(
      await fetch(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
    );
  } catch (error) {
    if (error instanceof Trouble) throw error;
    throw new Trouble("The server does not answer. Is `moot serve` still running?", 0);
  }
}

export const runPath = (run, rest = "") => `/api/runs/${encodeURIComponent(run)}${rest}`;

const EMPTY = { who: "", text: "", before: [], after: [], taken: [], sentence: "", usage: {}, model: "", wanted: [], status: "", note: "", ignored: false, is_whole: false, choices: [] };

// Follow a run behind an entry. A connection that is lost is made again behind the last entry that was seen, so nothing
// is missed and nothing is told twice.
export function follow(run, after, hear) {
  let last = after, source = null, timer = null, stopped = false, patience = 300;
  function open() {
    if (stopped) return;
    source = new EventSource(runPath(run, `/events?after=${last}`));
    source.addEventListener("open", () => {
      patience = 300;
      hear("connected", {});
    });
    source.addEventListener("step", (event) => {
      const step = { ...EMPTY, ...JSON.parse(event.data) };
      if (step.seq <= last) return;
      last = step.seq;
      hear("step", step);
    });
    for (const name of ["stands", "speech", "gap", "trouble"]) {
      source.addEventListener(name, (event) => hear(name, JSON.parse(event.data)));
    }
    source.addEventListener("over", (event) => {
      close();
      hear("over", JSON.parse(event.data));
    });
    source.addEventListener("error", () => {
      if (stopped) return;
      close();
      hear("lost", {});
      timer = setTimeout(open, patience);
      patience = Math.min(patience * 1.7, 4000);
    });
  }
  function close() {
    if (source) source.close();
    source = null;
  }
  open();
  return () => {
    stopped = true;
    clearTimeout(timer);
    close();
  };
}
