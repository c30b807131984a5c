"""Expressions over the surface, drawn at random: each in our spelling and as plain JavaScript for the reference."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

FINDING = "last_parsing_tool_calls.find(call => call.function.name === {name!r})?.function"


class Pair(NamedTuple):
    """One expression: as a workflow file has it, and without its shorthand."""

    ours: str
    plain: str


PLACES = (
    "common_data.count", "this.common_data.count", "variables.count", "common_data.title", "common_data['odd key']",
    "common_data.list", "common_data.deep", "common_data.deep.a.b[0]", "common_data.missing", "common_data.missing?.x",
    "common_data.deep?.a?.['b']", "common_data.list.length", "last_agent_response", "this.lastAgentResponse",
    "sub_workflow_result.summary", "this.sub_workflow_result", "last_tool_calls.length", "last_tool_calls[0].function",
    "last_parsing_tool_calls[0].function.name", "agents.coder.getLastResponse()", "getAgent('coder').getRole()",
    "this.getAgent('nobody')?.getRole()", "getToolCalls('coder').length", "this.getToolCalls('nobody').length",
    "contexts.history.messages[0].content", "getContext('history').messages.length", "agents.reviewer.getContextRole()",
    "getAgent('nobody').getRole()", "common_data.missing.x", "nobody",
)  # fmt: skip
LITERALS = (
    "0", "1", "-1", "2.5", "1e21", "0.1", "-0", "NaN", "''", "'a'", "'10'", "\"it's\"", "`t`", "true", "false", "null",
    "undefined", "[]", "[1, 2, 3]", "[3, 'a', null]", "({})", "({ a: 1, b: [2] })", "'Ünï→😀'", "/a+/.source",
)  # fmt: skip
BINARY = (
    "+", "-", "*", "/", "%", "**", "===", "!==", "==", "!=", "<", ">", "<=", ">=", "&&", "||", "&", "|", "^", "<<",
    ">>", ">>>", ",",
)  # fmt: skip
UNARY = ("!", "-", "+", "~", "typeof ", "void ", "!!")
METHODS = (
    ".toString()", "?.length", ".length", "?.[0]", "?.a", ".toUpperCase()", ".trim()", ".split('')", ".slice(1)",
    ".includes('o')", ".indexOf(2)", ".map(x => x + 1)", ".filter(x => x > 1)", ".reduce((a, b) => a + b, 0)",
    ".some(x => x === 2)", ".every(Boolean)", ".find(x => x > 1)", ".join('-')", ".concat([4])", ".flat()", ".at(-1)",
    ".padStart(5, '*')", ".replace(/o/g, '0')", ".match(/[a-z]+/)?.[0]", ".repeat(2)", ".toFixed(2)", ".charCodeAt(0)",
    ".startsWith('A')", ".entries().next().value", ".normalize('NFD').length", ".split(/[aeiou]/)", ".codePointAt(0)",
    ".toSorted?.((a, b) => b - a)",
)  # fmt: skip
FUNCTIONS = (
    "Object.keys(§)", "Object.entries(§ ?? {})", "JSON.stringify(§)", "Number(§)", "String(§)", "Boolean(§)",
    "Array.isArray(§)", "Math.max(1, §)", "Math.round(§)", "parseInt(§, 10)", "isNaN(§)", "[...new Set([§])]",
    "[§].flat(2)", "Object.assign({}, §)", "((x) => x)(§)", "(function () { return § })()", "`<${§}>`",
    "[...(§ ?? [])]", "({ key: § })", "encodeURIComponent(§)", "new Date(+(§)).getTime()", "[JSON.parse('[1]'), §]",
    "(() => { let n = 0; for (const c of String(§)) n += c.length; return n })()", "Math.min(...[§, 2])",
    "(() => { try { return (§).x.y } catch (e) { return e instanceof TypeError } })()",
    "(() => { switch (typeof (§)) { case 'string': return 1; case 'number': return 2; default: return 3 } })()",
)  # fmt: skip
CALLS = ("review_work", "odd_name", "nobody")
TAILS = ("", ".arguments", ".arguments.improvement_needed", ".arguments.notes", ".arguments.notes.length", ".name")


def drawn(random: Random, depth: int = 3) -> Pair:
    """An expression."""
    if depth == 0 or random.random() < 0.15:
        return _leaf(random)
    kind = random.randrange(6)
    inner = drawn(random, depth - 1)
    if kind == 0:
        return _in(inner, random.choice(FUNCTIONS))
    if kind == 1:
        return _in(inner, "(§)" + random.choice(METHODS))
    if kind == 2:
        return _in(inner, random.choice(UNARY) + "(§)")
    other = drawn(random, depth - 1)
    if kind == 3:
        third = drawn(random, depth - 1)
        return Pair(*(f"({a}) ? ({b}) : ({c})" for a, b, c in zip(inner, other, third, strict=True)))
    if kind == 4:
        return Pair(*(f"({a}) ?? ({b})" for a, b in zip(inner, other, strict=True)))
    sign = random.choice(BINARY)
    return Pair(*(f"({a}) {sign} ({b})" for a, b in zip(inner, other, strict=True)))


def _leaf(random: Random) -> Pair:
    if random.random() < 0.2:
        name, tail = random.choice(CALLS), random.choice(TAILS)
        return Pair(f"function.{name}{tail}", f"{FINDING.format(name=name)}{tail}")
    text = random.choice(PLACES if random.random() < 0.6 else LITERALS)
    return Pair(text, text)


def _in(inner: Pair, pattern: str) -> Pair:
    """The pattern with the expression in place of each §."""
    return Pair(pattern.replace("§", inner.ours), pattern.replace("§", inner.plain))
