"""YAML as far as compose files, Kubernetes manifests and pipelines need it: mappings, lists, texts, in block and flow.

Nothing is refused: a line that means nothing here is left out. Several documents in one text come as several values.
Anchors, aliases and tags are skipped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

KEY = re.compile(
    r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s#\[\]{},&*!|>'"%@`-][^:#]*?|-[^\s:][^:#]*?|<<)\s*:(?=\s|$)"""
)
BLOCK = re.compile(r"[|>][+-]?\d*[+-]?\s*(?:#.*)?$")
DEEPEST = 60


@dataclass(frozen=True, slots=True)
class Line:
    """A line that says something: how far it is indented, and what it says."""

    indent: int
    text: str
    number: int


def read_documents(text: str) -> list[Any]:
    """The values of all documents in a YAML text."""
    values = []
    text = re.sub(r"(?m)^\s*\{\{.*\}\}\s*$", "", text)  # a template's own lines say nothing of the values
    for document in re.split(r"(?m)^---(?:\s.*)?$", text.expandtabs(2)):
        raw = document.split("\n")
        lines = [
            Line(len(line) - len(line.lstrip()), cleaned, number)
            for number, line in enumerate(raw)
            if (cleaned := _strip_comment(line.strip())) and not cleaned.startswith("%")
        ]
        if lines:
            values.append(_Block(lines, raw).read(0))
    return values


def _strip_comment(text: str) -> str:
    quote = ""
    for position, sign in enumerate(text):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"" and (position == 0 or text[position - 1] in " [{,:("):
            quote = sign
        elif sign == "#" and (position == 0 or text[position - 1] in " \t"):
            return text[:position].rstrip()
    return text


class _Block:
    def __init__(self, lines: list[Line], raw: list[str]) -> None:
        self.lines = lines
        self.raw = raw
        self.at = 0

    def read(self, depth: int) -> Any:
        """The value that begins at this line, with all lines that are indented as far."""
        line = self.lines[self.at]
        if depth > DEEPEST:
            self.at = len(self.lines)
            return None
        if line.text == "-" or line.text.startswith("- "):
            return self.read_list(line.indent, depth)
        if KEY.match(line.text):
            return self.read_mapping(line.indent, depth)
        self.at += 1
        texts = [line.text]
        while texts[0][:1] in "[{" and _open(" ".join(texts)) and self.at < len(self.lines):
            texts.append(self.lines[self.at].text)
            self.at += 1
        return read_flow(" ".join(texts))

    def read_list(self, indent: int, depth: int) -> list[Any]:
        values = []
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if line.indent != indent or not (line.text == "-" or line.text.startswith("- ")):
                break
            rest = line.text[1:].lstrip()
            if not rest:
                self.at += 1
                values.append(self.inner(indent + 1, depth))
                continue
            place = indent + len(line.text) - len(rest)
            self.lines[self.at] = Line(place, rest, line.number)
            if BLOCK.match(rest):
                values.append(self.block_text(indent))
            else:
                values.append(self.read(depth + 1))
        return values

    def read_mapping(self, indent: int, depth: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        while self.at < len(self.lines):
            line = self.lines[self.at]
            match = KEY.match(line.text)
            if line.indent != indent or match is None:
                if line.indent > indent:  # a line that belongs to nothing here
                    self.at += 1
                    continue
                break
            key = str(scalar(match.group(1)))
            rest = re.sub(r"^(?:[&!][^\s]+\s*)+", "", line.text[match.end() :].strip())
            if BLOCK.match(rest):
                values[key] = self.block_text(indent)
            elif rest:
                self.lines[self.at] = Line(indent + 1, rest, line.number)
                values[key] = self.continued(rest, indent)
            else:
                self.at += 1
                values[key] = self.inner(indent, depth)
        return values

    def continued(self, rest: str, indent: int) -> Any:
        """A value on its key's line, which may go on below."""
        self.at += 1
        while self.at < len(self.lines) and (
            (rest[0] in "[{" and _open(rest)) or (self.lines[self.at].indent > indent and rest[0] not in "[{")
        ):
            rest += " " + self.lines[self.at].text
            self.at += 1
        return read_flow(rest)

    def inner(self, indent: int, depth: int) -> Any:
        """What stands below a key: further in, or a list at the same place."""
        if self.at >= len(self.lines):
            return None
        line = self.lines[self.at]
        is_list = line.text == "-" or line.text.startswith("- ")
        if line.indent > indent or (line.indent == indent and is_list):
            return self.read(depth + 1)
        return None

    def block_text(self, indent: int) -> str:
        """A text of several lines behind `|` or `>`, as it stands."""
        start = self.lines[self.at]
        folded = BLOCK.search(start.text) is not None and ">" in start.text.split(":")[-1]
        self.at += 1
        number = start.number + 1
        taken: list[str] = []
        while number < len(self.raw):
            line = self.raw[number]
            if line.strip() and len(line) - len(line.lstrip()) <= indent:
                break
            taken.append(line)
            number += 1
        while self.at < len(self.lines) and self.lines[self.at].number < number:
            self.at += 1
        margin = min((len(line) - len(line.lstrip()) for line in taken if line.strip()), default=0)
        return (" " if folded else "\n").join(line[margin:] for line in taken)


def _open(text: str) -> bool:
    plain = re.sub(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'', "", text)
    return plain.count("[") + plain.count("{") > plain.count("]") + plain.count("}")


def scalar(text: str) -> Any:
    """A plain or quoted scalar."""
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] == '"':
        return re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m.group(1), m.group(1)), text[1:-1])
    if len(text) >= 2 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if text.lower() in ("true", "yes", "on"):
        return True
    if text.lower() in ("false", "no", "off"):
        return False
    return None if text in ("", "~", "null") else text


def read_flow(text: str) -> Any:
    """A value in one line: `[a, b]`, `{a: b}` or a scalar."""
    value, _ = _flow(text.strip(), 0, 0)
    return value


def _flow(text: str, at: int, depth: int) -> tuple[Any, int]:
    if depth > DEEPEST:
        return None, len(text)
    if text[at : at + 1] == "[":
        return _flow_items(text, at + 1, "]", depth)
    if text[at : at + 1] == "{":
        items, end = _flow_items(text, at + 1, "}", depth)
        merged: dict[str, Any] = {}
        for item in items:
            merged.update(item if isinstance(item, dict) else {str(item): None})
        return merged, end
    if depth == 0:
        return scalar(text), len(text)
    match = re.compile(r'\s*("(?:[^"\\]|\\.)*"|\'(?:[^\']|\'\')*\'|(?:[^,\[\]{}:]|:(?!\s|$))*)').match(text, at)
    end = match.end() if match else len(text)
    return scalar(match.group(1) if match else ""), end


def _flow_items(text: str, at: int, close: str, depth: int) -> tuple[list[Any], int]:
    items: list[Any] = []
    while at < len(text):
        while at < len(text) and text[at] in " ,\n":
            at += 1
        if text[at : at + 1] == close or at >= len(text):
            return items, at + 1
        start = at
        value, at = _flow(text, at, depth + 1)
        while text[at : at + 1] == " ":
            at += 1
        if text[at : at + 1] == ":":
            at += 1
            while text[at : at + 1] == " ":
                at += 1
            inner, at = _flow(text, at, depth + 1)
            value = {str(value): inner}
        items.append(value)
        at = max(at, start + 1)
    return items, at
