// What a kind of machine shows of its runs: texts, lists, tables, bars, conversations and trees.
import { html, Bars, Fold, Table } from "./parts.js";
import { Face } from "./steps.js";

export function Sections({ sections }) {
  return html`${sections.map((section) => html`<section class="card" key=${section.title}>
    <h2>${section.title}</h2>
    ${section.parts.map((part) => html`<${Part} part=${part} />`)}
  </section>`)}`;
}

function Part({ part }) {
  switch (part.kind) {
    case "text":
      return html`<p class="said"><${Fold} text=${part.text} most=${1200} /></p>`;
    case "listed":
      return html`<p class="soft">${part.title}</p><ul>${part.items.map((item) => html`<li><${Fold} text=${item} /></li>`)}</ul>`;
    case "table":
      return html`<${Table} head=${part.head} rows=${part.rows} />`;
    case "chart":
      return html`<${Bars} title=${part.title} bars=${part.bars} whole=${part.most} />`;
    case "talk":
      return html`<${Talk} lines=${part.lines} />`;
    case "tree":
      return html`<pre class="exact tree" tabindex="0">${part.text}</pre>`;
    default:
      return null;
  }
}

export function Talk({ lines }) {
  return html`<ol class="talk" tabindex="0" aria-label="The conversation">${lines.map(([who, text], at) => html`<li key=${at} class=${who === "You" ? "mine" : ""}>
    <${Face} name=${who} /><div class="bubble"><b>${who}</b><p class="text"><${Fold} text=${text} most=${1500} /></p></div>
  </li>`)}</ol>`;
}
