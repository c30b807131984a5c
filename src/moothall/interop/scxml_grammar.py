"""What an SCXML document may say, and where. Whatever is not in these tables is refused, with file and line.

The tables follow the Recommendation; beyond it, `<transition>` may stand in `<scxml>` itself and then counts
everywhere, as earlier drafts and SCION have it. Foreign attributes are allowed anywhere. Foreign elements are allowed
inside elements that only hold others; where an action is expected they would be an action that silently does not
happen, and are refused. What stands inside `<data>`, `<assign>` and `<content>` is a value and is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator

from moothall.errors import DefinitionError
from moothall.interop.scxml_content import SCXML, Wrong, seconds
from moothall.interop.scxml_markup import Tag

NODES = frozenset(("state", "parallel", "final", "history"))

_ACTIONS = "raise if foreach log assign script send cancel"
_INNER = "onentry onexit transition state parallel history datamodel invoke"
_VALUE = "*"

# element, attributes it must have, attributes it may have, elements inside
_ROWS = (
    ("scxml", "", "initial name version datamodel binding", "state parallel final datamodel script transition"),
    ("state", "", "id initial", f"{_INNER} initial final"),
    ("parallel", "", "id", _INNER),
    ("final", "", "id", "onentry onexit donedata"),
    ("history", "", "id type", "transition"),
    ("initial", "", "", "transition"),
    ("transition", "", "event cond target type", _ACTIONS),
    ("onentry", "", "", _ACTIONS),
    ("onexit", "", "", _ACTIONS),
    ("raise", "event", "", ""),
    ("if", "cond", "", f"{_ACTIONS} elseif else"),
    ("elseif", "cond", "", ""),
    ("else", "", "", ""),
    ("foreach", "array item", "index", _ACTIONS),
    ("log", "", "label expr", ""),
    ("assign", "location", "expr", _VALUE),
    ("script", "", "src", _VALUE),
    (
        "send",
        "",
        "event target type id delay eventexpr targetexpr typeexpr idlocation delayexpr namelist",
        "content param",
    ),
    ("cancel", "", "sendid sendidexpr", ""),
    ("datamodel", "", "", "data"),
    ("data", "id", "src expr", _VALUE),
    ("donedata", "", "", "content param"),
    ("content", "", "expr", _VALUE),
    ("param", "name", "expr location", ""),
    ("invoke", "", "type src id typeexpr srcexpr idlocation namelist autoforward", "param finalize content"),
    ("finalize", "", "", "if foreach log assign script cancel"),
)
_MUST = {name: must.split() for name, must, _, _ in _ROWS}
_MAY = {name: frozenset((must + " " + may).split()) for name, must, may, _ in _ROWS}
_INSIDE = {name: frozenset(inside.split()) for name, _, _, inside in _ROWS}
_HOLDERS = frozenset(("scxml", "state", "parallel", "final", "history", "initial", "datamodel", "donedata", "invoke"))

# element, two ways to say one thing
_EITHER = (
    ("send", "event", "eventexpr"),
    ("send", "target", "targetexpr"),
    ("send", "type", "typeexpr"),
    ("send", "id", "idlocation"),
    ("send", "delay", "delayexpr"),
    ("cancel", "sendid", "sendidexpr"),
    ("invoke", "type", "typeexpr"),
    ("invoke", "src", "srcexpr"),
    ("invoke", "id", "idlocation"),
    ("param", "expr", "location"),
    ("data", "src", "expr"),
)

# element, attribute, the values that it knows
_CHOICES = (
    ("scxml", "version", ("1.0",)),
    ("scxml", "datamodel", ("ecmascript", "null")),
    ("scxml", "binding", ("early", "late")),
    ("transition", "type", ("external", "internal")),
    ("history", "type", ("shallow", "deep")),
    ("invoke", "autoforward", ("true", "false")),
)


def check(tag: Tag, file: str) -> None:
    """Refuse a document that says what no document may say."""
    for reason in (*_about_attributes(tag), *_ABOUT.get(tag.name, _nothing)(tag)):
        raise DefinitionError(f"{file}, line {tag.line}: {reason}")
    if _VALUE in _INSIDE[tag.name]:
        return
    if tag.text.strip():
        raise DefinitionError(
            f"{file}, line {tag.line}: <{tag.name}> holds text, where none belongs: {_start(tag.text)}"
        )
    for child in tag.tags:
        for reason in _about_place(child, tag):
            raise DefinitionError(f"{file}, line {child.line}: {reason}")
        if child.space == SCXML:
            check(child, file)


def _start(text: str) -> str:
    words = " ".join(text.split())
    return repr(words if len(words) < 40 else words[:37] + "...")


def _about_attributes(tag: Tag) -> Iterator[str]:
    for name in tag.attributes:
        if name not in _MAY[tag.name] and (not name.startswith("{") or name.startswith(f"{{{SCXML}}}")):
            known = ", ".join(sorted(_MAY[tag.name])) or "none"
            yield f"<{tag.name}> has no attribute {name!r}; it has {known}"
    for name in _MUST[tag.name]:
        if not (tag.get(name) or "").strip():
            yield f"<{tag.name}> needs the attribute {name!r}"
    for element, one, other in _EITHER:
        if tag.name == element and tag.get(one) is not None and tag.get(other) is not None:
            yield f"<{tag.name}> has {one!r} and {other!r}; only one of them can count"
    for element, name, known_values in _CHOICES:
        if tag.name == element and tag.get(name) not in (None, *known_values):
            yield f"<{tag.name}>: {name} is {tag.get(name)!r}; known are {', '.join(known_values)}"


def _about_place(tag: Tag, around: Tag) -> Iterator[str]:
    if tag.space == SCXML:
        if tag.name not in _MAY:
            yield f"there is no element <{tag.name}>"
        elif tag.name not in _INSIDE[around.name]:
            yield f"<{tag.name}> cannot stand inside <{around.name}>"
    elif not tag.space:
        yield f"<{tag.name}> has no namespace; declare xmlns={SCXML!r}"
    elif around.name not in _HOLDERS:
        yield f"<{tag.name}> of the namespace {tag.space} is not an action that is known here"


def _count(tag: Tag, name: str) -> int:
    return sum(1 for child in tag.tags if child.name == name and child.space == SCXML)


def _nothing(tag: Tag) -> Iterator[str]:
    return iter(())


def _about_state(tag: Tag) -> Iterator[str]:
    initial = _count(tag, "initial") + (tag.get("initial") is not None)
    if initial > 1:
        yield "<state> says more than once where it begins"
    if initial and not any(child.name in NODES - {"history"} for child in tag.tags):
        yield "<state> says where it begins, but there is no state inside"


def _about_transition(tag: Tag) -> Iterator[str]:
    for name in ("event", "target"):
        if tag.get(name) is not None and not (tag.get(name) or "").split():
            yield f"<transition> has an empty {name}"


def _about_default(tag: Tag) -> Iterator[str]:
    if _count(tag, "transition") != 1:
        yield f"<{tag.name}> needs exactly one transition"
    for child in tag.tags:
        if child.name == "transition" and (child.get("target") is None or {"event", "cond"} & child.attributes.keys()):
            yield f"the transition of <{tag.name}> needs a target, and has neither event nor condition"


def _about_if(tag: Tag) -> Iterator[str]:
    branches = [child.name for child in tag.tags if child.name in ("elseif", "else")]
    if "else" in branches[:-1]:
        yield "<if> has a branch after <else>"


def _about_send(tag: Tag) -> Iterator[str]:
    if not {"event", "eventexpr"} & tag.attributes.keys() and not _count(tag, "content"):
        yield "<send> needs an event or content"
    if _count(tag, "content") and (_count(tag, "param") or tag.get("namelist") is not None):
        yield "<send> has content and parameters; only one of them can be the data"
    try:
        delay = seconds(tag.get("delay") or "0")
    except Wrong as wrong:
        yield f"<send>: {wrong}"
    else:
        if delay and tag.get("target") == "#_internal":
            yield "<send>: an internal event cannot be delayed"


def _about_donedata(tag: Tag) -> Iterator[str]:
    if _count(tag, "content") > 1 or (_count(tag, "content") and _count(tag, "param")):
        yield "<donedata> says twice what the data are"


def _about_value(tag: Tag) -> Iterator[str]:
    given = ("expr" in tag.attributes) + ("src" in tag.attributes) + bool(tag.text.strip() or any(tag.tags))
    if given > 1:
        yield f"<{tag.name}> says twice what its value is"
    if tag.name == "assign" and not given:
        yield "<assign> says no value"
    if (tag.get("id") or "").startswith("_"):
        yield "names that begin with '_' belong to the platform"


def _about_param(tag: Tag) -> Iterator[str]:
    if not {"expr", "location"} & tag.attributes.keys():
        yield "<param> needs expr or location"


def _about_invoke(tag: Tag) -> Iterator[str]:
    given = ("src" in tag.attributes) + ("srcexpr" in tag.attributes) + _count(tag, "content")
    if given > 1:
        yield "<invoke> says twice what to invoke"
    if tag.get("namelist") is not None and _count(tag, "param"):
        yield "<invoke> has namelist and parameters; only one of them can count"
    if _count(tag, "finalize") > 1:
        yield "<invoke> has more than one <finalize>"


_ABOUT = {
    "state": _about_state,
    "transition": _about_transition,
    "initial": _about_default,
    "history": _about_default,
    "if": _about_if,
    "send": _about_send,
    "donedata": _about_donedata,
    "data": _about_value,
    "assign": _about_value,
    "content": _about_value,
    "script": _about_value,
    "param": _about_param,
    "invoke": _about_invoke,
}
