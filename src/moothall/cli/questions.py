"""Questions at a terminal: shown whole, with their deadline and the way to answer, and asked where a person sits."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

from moothall.app.runs.view import moment
from moothall.app.values import misfits, printable
from moothall.cli.keyboard import discard_typed, read_answer
from moothall.cli.screen import harmless, notice, paint, shorten
from moothall.errors import DefinitionError, Refused

LONGEST = 40
"""How many digits of a number are looked at."""
YES_NO = {"type": "boolean"}
WORDS = {"y": True, "yes": True, "n": False, "no": False}
FORMS = {"boolean": "true | false", "string": '"…"', "object": "{…}"}


def format_question(question: Mapping[str, Any], command: str) -> str:
    """A question as a person reads it later: what is asked, until when, and the command that answers."""
    until = question["due"]
    deadline = f" (until {moment(until)})" if until is not None else ""
    who = question.get("who", "")
    head = f"question {question['id']}{f' for {who}' if who else ''}{deadline}"
    asked = paint(f"{head}: {harmless(question['prompt'])}", "bold", sys.stderr)
    asked = "\n".join([asked, *map(harmless, _form_lines(question["schema"]))])
    way = f"{asked}\nanswer with:  {command} {_way(question['schema'])}" + (f" --as {shlex.quote(who)}" if who else "")
    return f"{way}\nof the shape: {form}" if (form := _form_of_json(question["schema"])) else way


def _way(schema: Any) -> str:
    if schema == YES_NO:
        return "--yes | --no"
    if choices := _choices(schema):
        return f"--text {' | '.join(map(str, choices))}"
    return "--text TEXT" if schema == {"type": "string"} else "--json FILE (or - for stdin, or the JSON itself)"


def _form_of_json(schema: Any) -> str:
    """What an answer has to look like that can only be given as JSON; nothing where anything will do."""
    is_simple = schema in (YES_NO, {"type": "string"}, {}) or bool(_choices(schema))
    return "" if is_simple else harmless(_form(schema))


def _form(schema: Any) -> str:
    """A schema as one would write the JSON down; `?` marks what may be left out."""
    match schema:
        case {"enum": [*choices]}:
            return " | ".join(json.dumps(choice, ensure_ascii=False) for choice in choices)
        case {"anyOf": [*choices]}:
            return " | ".join(map(_form, choices))
        case {"type": "object", "properties": dict(fields)}:
            return "{" + ", ".join(_field(schema, name, inner) for name, inner in fields.items()) + "}"
        case {"type": "array", "prefixItems": [*inner]}:
            return f"[{', '.join(map(_form, inner))}]"
        case {"type": "array"}:
            return f"[{_form(schema.get('items'))}, …]"
        case {"type": str(kind)}:
            return FORMS.get(kind, kind)
    return "…"


def _field(schema: Mapping[str, Any], name: str, inner: Any) -> str:
    return f"{json.dumps(name, ensure_ascii=False)}{'' if name in schema.get('required', ()) else '?'}: {_form(inner)}"


def _choices(schema: Any) -> list[Any]:
    found = schema.get("enum", []) if isinstance(schema, Mapping) else []
    return found if all(isinstance(choice, str) for choice in found) else []


@dataclass(frozen=True, slots=True)
class Given:
    """What a person answered."""

    value: Any


@dataclass(frozen=True, slots=True)
class PutOff:
    """A question that a person left for later: the fields of it that were filled in, and whether all is to stop now."""

    draft: Mapping[str, Any] = field(default_factory=dict)
    is_interrupted: bool = False


async def prompt_for_answer(question: Mapping[str, Any], person: str) -> Given | PutOff:
    """What the person at the terminal answers now, in this name."""
    print(paint(harmless(question["prompt"]), "bold", sys.stderr), file=sys.stderr)
    if (who := question["who"]) and who != person:
        notice(f"this question is for {printable(who)}: who answers it here answers as {printable(who)}")
    answers: dict[str, Any] = {}
    try:
        if fields := _form_fields(question["schema"]):
            is_whole = await _fill_in(fields, question["schema"].get("required", ()), answers)
            return Given(answers) if is_whole else PutOff(answers)
        schema = question["schema"]
        return await _read_value(schema, f"{_hint(schema)}, or Enter to answer later: ") or PutOff()
    except KeyboardInterrupt:
        return PutOff(answers, is_interrupted=True)


async def _read_value(schema: Any, prompt: str, check: Any = True) -> Given | None:
    """What a person types until it is a value of this schema that passes the check as well; None for nothing."""
    while (said := await read_answer(prompt)) != "":
        try:
            value = _interpret(schema, said)
        except (ValueError, RecursionError, Refused):
            discard_typed()
            print(f"{said!r} is not an answer to this", file=sys.stderr)
            continue
        if not (wrong := misfits(check, value)):
            return Given(value)
        discard_typed()
        print(harmless("; ".join(map(str, wrong))), file=sys.stderr)
    return None


def _form_fields(schema: Any) -> Mapping[str, Any]:
    """The fields of a question that is several in one, each with its own words."""
    fields = schema.get("properties", {}) if isinstance(schema, Mapping) else {}
    has_words = all(isinstance(inner, Mapping) and "description" in inner for inner in fields.values())
    return fields if has_words else {}


def _form_lines(schema: Any) -> list[str]:
    """The questions of a form, a line for each."""
    return [f"  {name}: {_field_text(inner)}" for name, inner in _form_fields(schema).items()]


def _field_text(inner: Mapping[str, Any]) -> str:
    by, earlier = inner.get("asked_by", ""), inner.get("earlier")
    said = "" if earlier is None else f" [earlier: {json.dumps(earlier, ensure_ascii=False)}]"
    return f"{inner['description']}{f' ({by})' if by else ''}{said}"


async def _fill_in(fields: Mapping[str, Any], required: Collection[str], answers: dict[str, Any]) -> bool:
    """Have the person at the terminal answer question by question; whether none was left open that is needed.

    What is answered is kept in `answers` at once: it is not lost where the rest is left for later.
    """
    for name, inner in fields.items():
        earlier = inner.get("earlier")
        way = "Enter keeps the earlier answer" if earlier is not None else "Enter answers later"
        way = way if earlier is not None or name in required else "Enter leaves it open"
        print(harmless(_field_text(inner)), file=sys.stderr)
        plain = _plain(inner)
        given = await _read_value(plain, f"{_hint(plain)}; {way}: ", inner)
        discard_typed()
        if given is not None:
            answers[name] = given.value
        elif earlier is not None:
            answers[name] = earlier
        elif name in required:
            return False
    return True


def _plain(inner: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of one question, as far as it says how an answer is typed."""
    kind = {"type": inner["type"]} if "type" in inner else {}
    return kind if kind in (YES_NO, {"type": "string"}) and "enum" not in inner else inner


def _hint(schema: Any) -> str:
    if schema == YES_NO:
        return "[y]es, [n]o"
    if choices := _choices(schema):
        return ", ".join(map(str, choices))
    form = _form_of_json(schema)
    return "your answer" if schema == {"type": "string"} else "your answer as JSON" + (f", {form}" if form else "")


def _interpret(schema: Any, said: str) -> Any:
    if schema == YES_NO:
        if said.lower() not in WORDS:
            raise ValueError(said)
        return WORDS[said.lower()]
    if choices := _choices(schema):
        if said not in choices:
            raise ValueError(said)
        return said
    return said if schema == {"type": "string"} else parse_json(said, shorten(said))


def read_json(name: str) -> Any:
    """JSON from a file, from stdin (`-`), or as it stands."""
    if name != "-" and name.lstrip()[:1] in tuple('{["0123456789-tfn') and not os.path.exists(name):
        try:
            return parse_json(name, shorten(name))
        except Refused:
            if name.lstrip()[:1] in tuple('{["'):
                raise
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except OSError as error:
        raise DefinitionError(f"{name} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise Refused(f"{name} is not JSON: {error}") from error
    return parse_json(text, name)


def parse_json(text: str, what: str) -> Any:
    """What a text says that is to be JSON, or a refusal that names it."""
    try:
        return json.loads(text, parse_int=_whole, parse_float=_finite, parse_constant=_finite)
    except ValueError as error:
        raise Refused(f"{what} is not JSON: {error}") from error
    except RecursionError as error:
        raise Refused(f"{what} is JSON that is nested too deeply") from error


def _whole(digits: str) -> int:
    """A whole number that a journal can keep."""
    if len(digits) > LONGEST or not -(2**63) <= (number := int(digits)) < 2**64:
        raise ValueError(f"the whole number {shorten(digits, LONGEST)} has more than 64 bits")
    return number


def _finite(digits: str) -> float:
    if not isfinite(number := float(digits)):
        raise ValueError(f"{shorten(digits, LONGEST)} is not a number of plain JSON, which a journal could keep")
    return number
