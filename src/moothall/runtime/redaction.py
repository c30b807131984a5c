"""Takes texts out of a journal: what stays of an entry and of a head when a run, or a person, is forgotten.

What stays tells what happened, not what was said: numbers of entries, times, causes, states, the names of events, of
agents and of tools, what was spent. Everything else of a run that is forgotten is a placeholder. Where a person is
forgotten, it is what that person answered, the person's name, and those words wherever else they stand in the run;
what others made of them in their own words stays. A very short answer, such as a yes, is a word of everybody: it is
looked for where it is the whole of a value, and left inside longer texts.

Nothing here knows a store. Every entry keeps its number and how many messages it appends, so that threads fit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from moothall.kernel.effects import WriteRecords
from moothall.kernel.events import RecordsWritten, SharedRecord
from moothall.kernel.frozen import Frozen
from moothall.runtime.journal import FORGOTTEN

PLACEHOLDER = "[forgotten]"
_KEPT_OF_EVENTS = frozenset(
    [
        "name",
        "agent",
        "tool",
        "usage",
        "fault",
        "resource",
        "limit",
        "entry",
        "digest",
        "was",
        "again",
        "limits",
        "spent",
    ],
)
_KEPT_OF_EFFECTS = frozenset(("agent", "tool", "machine", "delay", "within", "timeout", "repeats", "collection"))
_OWN_EVENTS = re.compile(
    r"(run|effect|error|records)\..*|done\.invoke.*|replied.*|returned.*|unusable.*|answered.*|expired.*|inspected|altered"
)
"""The events whose fields are ours; of those of an author nothing but the name is known to be no text."""
_SPEAKERS = ("by", "speaker", "author", "name", "from")
_SHORTEST_NAME = 2
_LONGEST_WORD_OF_EVERYBODY = 3

Change = Callable[[Any], Any]


class Note(Frozen):
    """When texts were forgotten, by whom, and whether it was the run or a person."""

    at: float
    by: str
    what: Literal["run", "person"]

    def plain(self) -> dict[str, Any]:
        """The note as it stands in an entry."""
        return {"at": self.at, "by": self.by, "what": self.what}


def forget_entry(entry: Mapping[str, Any], note: Note) -> dict[str, Any]:
    """An entry without a text."""
    new = dict(entry)
    new["event"] = _forget_event(entry["event"])
    new["effects"] = [_forget_effect(effect) for effect in entry["effects"]]
    if "appends" in entry:
        new["appends"] = [{**append, "message": PLACEHOLDER} for append in entry["appends"]]
    if "answers" in entry:
        new["answers"] = [dict.fromkeys(answer, PLACEHOLDER) for answer in entry["answers"]]
    for part in ("reason", "ignored"):
        if part in entry:
            new[part] = PLACEHOLDER
    return _noted(new, note)


def _forget_event(event: Mapping[str, Any]) -> dict[str, Any]:
    kept = _kept_of(event)
    return {name: value if name in kept or not value else PLACEHOLDER for name, value in event.items()}


def _kept_of(event: Mapping[str, Any]) -> frozenset[str]:
    return _KEPT_OF_EVENTS if _OWN_EVENTS.fullmatch(event["name"]) else frozenset(("name",))


def _forget_effect(pending: Mapping[str, Any]) -> dict[str, Any]:
    inner = {
        name: value if name in _KEPT_OF_EFFECTS or not value else PLACEHOLDER
        for name, value in pending["effect"].items()
    }
    if isinstance(event := pending["effect"].get("event"), Mapping):
        inner["event"] = _forget_event(event)
    around = {name: PLACEHOLDER for name in ("denied", "doubt") if name in pending}
    return {**pending, **around, "effect": inner}


def forget_head(head: Mapping[str, Any], note: Note) -> dict[str, Any]:
    """A head without a text."""
    snapshot = {**head["snapshot"], "data": PLACEHOLDER, "reason": PLACEHOLDER if head["snapshot"]["reason"] else ""}
    if "output" in snapshot:
        snapshot["output"] = PLACEHOLDER
    new = {name: value for name, value in head.items() if name != "same"}
    return _noted({**new, "snapshot": snapshot}, note)


def forget_texts(value: Any) -> Any:
    """A value with a placeholder for each text in it; the names of its fields stay."""
    return _replaced(value, lambda text: PLACEHOLDER if text else text, str)


def records_written(entries: Sequence[Mapping[str, Any]]) -> Iterator[SharedRecord]:
    """The records that a run has written, each with the version that it got then."""
    causes = {entry["cause"] for entry in entries if entry["event"]["name"] == RecordsWritten.name}
    for entry in entries:
        for pending in entry["effects"]:
            if pending["kind"] == WriteRecords.kind and pending["key"] in causes:
                for record in pending["effect"]["records"]:
                    yield SharedRecord(record["collection"], record["key"], record["value"], record["version"] + 1)


# A person.


class Words(Frozen):
    """What a person said, and the person's name: all that is looked for."""

    name: str
    texts: frozenset[str] = frozenset()

    def change(self) -> Change:
        """Replaces these words in a value, wherever they stand as words; very short ones only where they are all."""
        long = {text for text in self.texts if len(text) > _LONGEST_WORD_OF_EVERYBODY}
        named = {self.name} if len(self.name) >= _SHORTEST_NAME else set()
        short = {*self.texts, self.name} - long - named - {""}
        spelt = {form for text in long | named for form in (text, *_as_json(text))}
        longest = sorted(spelt, key=len, reverse=True)
        pattern = re.compile("|".join(rf"(?<!\w){re.escape(form)}(?!\w)" for form in longest) or r"(?!)")

        def rename(text: str) -> str:
            return pattern.sub(PLACEHOLDER, text)

        def change(text: str) -> str:
            return PLACEHOLDER if text.strip() in short else rename(text)

        return lambda value: _replaced(value, change, rename)


def words_of(name: str, entries: Iterable[Mapping[str, Any]]) -> Words | None:
    """What a person said in these entries; None where the person is not in them."""
    texts: set[str] = set()
    is_there = False
    for entry in entries:
        event = entry["event"]
        if event.get("by") == name:
            is_there = True
            said = {part: event.get(part) for part in ("value", "reason") if event["name"] != "run.retried"}
            texts.update(_texts_in(said))
        for append in entry.get("appends", ()):
            if _is_said_by(name, append["message"]):
                is_there = True
                texts.update(_texts_in({part: text for part, text in append["message"].items() if part in _SAID}))
        is_there = is_there or any(pending["effect"].get("who") == name for pending in entry["effects"])
    return Words(name, frozenset(texts)) if is_there else None


_SAID = ("text", "content", "message", "value", "answer")


def _is_said_by(name: str, message: Any) -> bool:
    return isinstance(message, dict) and any(message.get(part) == name for part in _SPEAKERS)


def forget_words(entry: Mapping[str, Any], words: Words, note: Note) -> dict[str, Any]:
    """An entry without what a person said; itself where nothing of that stands there."""
    change, event = words.change(), entry["event"]
    new = {name: change(value) if name in _PAYLOAD else value for name, value in entry.items()}
    new["event"] = _changed(event, change, _kept_of(event))
    new["effects"] = [
        {**pending, "effect": _changed(pending["effect"], change, _KEPT_OF_EFFECTS)} for pending in entry["effects"]
    ]
    if event.get("by") == words.name:
        new["event"] = {**new["event"], "by": PLACEHOLDER}
        if "value" in event:
            new["event"]["value"] = PLACEHOLDER
    return dict(entry) if new == entry else _noted(new, note)


def forget_words_in_head(head: Mapping[str, Any], words: Words, note: Note) -> dict[str, Any]:
    """The same of a head. It is marked in any case: what the run decided by is not all there any more."""
    snapshot, change = head["snapshot"], words.change()
    new = {name: change(value) if name in ("data", "output", "reason") else value for name, value in snapshot.items()}
    return _noted({**head, "snapshot": new}, note)


_PAYLOAD = frozenset(("appends", "answers", "reason", "ignored"))


def _noted(plain: dict[str, Any], note: Note) -> dict[str, Any]:
    return {**plain, FORGOTTEN: [*plain.get(FORGOTTEN, ()), note.plain()]}


def _changed(fields: Mapping[str, Any], change: Change, kept: frozenset[str]) -> dict[str, Any]:
    return {name: value if name in kept else change(value) for name, value in fields.items()}


def _replaced(value: Any, change: Callable[[str], str], rename: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list | tuple):
        return [_replaced(item, change, rename) for item in value]
    if isinstance(value, Mapping):
        return {rename(name): _replaced(item, change, rename) for name, item in value.items()}
    return value


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value.strip()
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts_in(item)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts_in(item)


def _as_json(text: str) -> tuple[str, str]:
    return json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]
