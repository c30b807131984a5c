// Check a workflow file, with its picture beside it. Nothing in it is executed.
import { html, useEffect, useRef, useState, Problem } from "./parts.js";
import { post } from "./api.js";
import { Picture } from "./picture.js";

const EXAMPLE = `{
  "workflow_name": "greeting",
  "description": "An agent greets somebody",
  "input": { "name": "guest", "type": "string", "description": "who is greeted" },
  "output": { "name": "greeting", "type": "string", "description": "the greeting" },
  "contexts": [{ "name": "talk", "starting_messages": [], "max_length": 10000 }],
  "agents": [{ "agent_role": "coder", "context": "talk", "role": "assistant" }],
  "states": [
    { "name": "start", "transition": [{ "target": "writing", "condition": "true" }] },
    {
      "name": "writing",
      "agent": "coder",
      "input": "'Greet ' + common_data.guest",
      "transition": [
        {
          "target": "stop",
          "condition": "true",
          "before": "() => { this.common_data.greeting = this.last_agent_response; }"
        }
      ]
    },
    { "name": "stop" }
  ]
}
`;

export function Check() {
  const [text, setText] = useState(EXAMPLE);
  const [name, setName] = useState("draft.json");
  const [found, setFound] = useState(null);
  const [error, setError] = useState(null);
  const turn = useRef(0);
  useEffect(() => {
    const mine = ++turn.current;
    const timer = setTimeout(async () => {
      try {
        const told = await post("/api/check", { text, name });
        if (mine === turn.current) setFound(told), setError(null);
      } catch (problem) {
        if (mine === turn.current) setError(problem);
      }
    }, 350);
    return () => clearTimeout(timer);
  }, [text, name]);
  const open = async (event) => {
    const [file] = event.target.files;
    if (!file) return;
    setName(/\.(json|ya?ml)$/.test(file.name) ? file.name : "draft.json");
    setText(await file.text());
  };
  const errors = found ? found.findings.filter((finding) => finding.level === "error").length : 0;
  return html`<section>
    <h1>Check a file</h1>
    <p class="lead">Paste or open a workflow, debate, arena or team file: everything that is wrong with it is listed, and its picture drawn. Nothing in it is executed or kept.</p>
    <div class="split">
      <div>
        <label class="filter"><span>Open</span><input type="file" accept=".json,.yaml,.yml" onChange=${open} /></label>
        <label class="hidden" for="source">The file</label>
        <textarea id="source" class="code tall" spellcheck="false" value=${text} onInput=${(event) => setText(event.target.value)}></textarea>
      </div>
      <div>
        <${Problem} error=${error} />
        ${found && html`<p role="status" class="verdict ${found.is_wrong ? "wrong" : "right"}">${found.is_wrong ? (errors ? `${errors} ${errors === 1 ? "error" : "errors"}` : "It cannot be used as it is") : "Nothing is wrong with it"}</p>
          ${found.picture && html`<${Picture} drawn=${found.picture} />`}
          ${!found.picture && html`<p class="soft small">${found.findings.length ? "The picture comes back when the errors are mended." : found.problem}</p>`}
          <ul class="findings">${found.findings.map((finding) => html`<li class=${finding.level}><p><span class="chip ${finding.level}">${finding.level}</span> <code>${finding.place}${finding.inside ? ` ${finding.inside}` : ""}</code></p><p>${finding.why}</p><p class="soft">${finding.remedy}</p></li>`)}</ul>
          ${found.summary && html`<p class="soft small">${found.summary}</p>`}`}
      </div>
    </div>
  </section>`;
}
