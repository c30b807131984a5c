"""What an SCXML document does: its executable content, as scripted moves and guards of the kernel.

A block of elements becomes one move. Its elements run in order; one that goes wrong ends the block and raises
`error.execution`, and what ran before it stands. The move is pure: data in, data, effects and raised events out.

Expressions are JavaScript and the kernel has no engine. Whatever is not a literal is asked for: `script` is JavaScript
text, `scope` a dict of its global variables, and the answer is the value of the text's last statement as JSON. The
text works as it stands in any engine: it declares variables that have no value, and brings `In` and the document's
functions along. Three kinds of text need no engine and are matched exactly: JSON, a plain text in quotes, and
`In('state')`.

The data of a run are the variables of the document. Names that begin with "_" belong to this module:

    _sessionid  who this session is        _parent, _invokeid  who invoked it, and as what
    _ids        how many ids were made     _invoked            the ids of what it invoked
    _bound      states whose late data have their values
    _functions  what `<script>` in executable content defined, by name, as text: JSON has no functions

`Append`s to the thread "log" are what `<log>` says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from typing import Any, NoReturn

from moothall.errors import DefinitionError
from moothall.interop.scxml_dom import TREES, of_tag, text_of, trees_in
from moothall.interop.scxml_markup import Tag, brief, parse, render
from moothall.kernel.codec import encode
from moothall.kernel.effects import CancelSend, Effect, Send, StartChild
from moothall.kernel.events import Event, ExecutionFailed, Named, Started, matches
from moothall.kernel.step import Absent, Answer, Append, Failed, Moment, Move, Scripted, Value

SCXML = "http://www.w3.org/2005/07/scxml"
PROCESSOR = "http://www.w3.org/TR/scxml/#SCXMLEventProcessor"
PROCESSORS = frozenset(("", "scxml", PROCESSOR))
INVOCATIONS = frozenset(("", "scxml", "http://www.w3.org/TR/scxml", "http://www.w3.org/TR/scxml/"))
MANY = 1_000_000

_VARIABLE = re.compile(r"[A-Za-z$_][\w$]*")
_QUOTED = re.compile(r"'([^'\\\n]*)'")
_IN = re.compile(r"In\(\s*(?:'([^'\\]*)'|\"([^\"\\]*)\")\s*\)")
_TIME = re.compile(r"(\d+|\d*\.\d+)(ms|s)", re.IGNORECASE)
_RESERVED = re.compile(
    "break|case|catch|class|const|continue|debugger|default|delete|do|else|enum|export|extends|false|finally|for|"
    "function|if|import|in|instanceof|let|new|null|return|static|super|switch|this|throw|true|try|typeof|var|void|"
    "while|with|yield|await"
)


class Message(Named):
    """An event of a document, with what SCXML's `_event` says about where it came from."""

    type: str = "external"
    sendid: str = ""
    origin: str = ""
    origintype: str = ""
    invokeid: str = ""


class Finalize(Named):
    """An event from an invoked session has arrived: time for `<finalize>`, which then raises the event itself."""

    cause: Event = Started()


class Post(Effect):
    """Deliver an event to another session after a delay in seconds: "#_parent", "#_INVOKEID", "#_scxml_SESSIONID"."""

    kind = "scxml.post"
    owned = False
    target: str
    event: Event
    delay: float = 0
    id: str = ""


class Invoke(StartChild):
    """Start another session. It may hear all that this one hears; `finalize` names the event that precedes its own."""

    kind = "start.child"
    forward: bool = False
    finalize: str = ""


class Aside(str):
    """A script whose value changes nothing: a driver without an engine may answer `Absent`."""

    __slots__ = ()


class Content(Scripted):
    """A move or guard that came from a document, with the tags it came from."""

    role: str = "block"
    tags: tuple[Tag, ...] = ()


class Model:
    """What a document declares, filled while it is read: its name, its variables, its scripts."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.declared: dict[str, None] = {}
        self.scripts: list[str] = []


class Wrong(Exception):
    """An element of executable content failed; the rest of its block is not run."""

    def __init__(self, reason: str, *, name: str = ExecutionFailed.name, sendid: str = "") -> None:
        super().__init__(reason)
        self.name = name
        self.sendid = sendid
        self.tag: Tag | None = None


@lru_cache(maxsize=4096)
def literal(source: str) -> Value | None:
    """The value of a text that is a literal beyond doubt: JSON, or a plain text in single quotes."""
    source = source.strip()
    if quoted := _QUOTED.fullmatch(source):
        return Value(quoted[1])
    try:
        return Value(json.loads(source, parse_constant=_refuse_constant))
    except ValueError:
        return None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def seconds(text: str) -> float:
    """A delay as CSS writes times: "10ms", "1s", ".5s"."""
    found = _TIME.fullmatch(text.strip())
    if found is None:
        if text.strip() == "0":
            return 0
        raise Wrong(f"{text!r} is not a delay; write it like 10ms, 1s or .5s")
    return float(found[1]) / (1000 if found[2].lower() == "ms" else 1)


def inline(tag: Tag) -> Answer:
    """What stands inside a tag, as a value: a document, JSON as what it says, other text with single blanks."""
    tags = list(tag.tags)
    if not tags:
        return of_text(tag.text)
    if len(tags) == 1 and not tag.text.strip():
        return Value(of_tag(tags[0]))
    return Value(render(tag.inside, "").strip())


def of_file(text: str) -> Answer:
    """The value of a text from a file."""
    try:
        return Value(of_tag(parse(text, "markup")))
    except DefinitionError:
        return of_text(text)


def of_text(text: str) -> Answer:
    """The value of a text that is not a document."""
    words = " ".join(text.split())
    if not words:
        return Absent()
    if words.startswith("'"):
        return Value(words)
    return literal(text) or Value(words)


# what a block does to the run


class Flow:
    """The working state of one block: the data, and what is wanted so far."""

    __slots__ = ("appends", "data", "effects", "event", "model", "moment", "raises", "scripts")

    def __init__(self, model: Model, data: Mapping[str, Any], event: Event, moment: Moment) -> None:
        self.model = model
        self.data: dict[str, Any] = dict(data)
        self.event = event.cause if isinstance(event, Finalize) else event
        self.moment = moment
        self.scripts: Sequence[str] = [*model.scripts, *_definitions(data.get("_functions", {}))]
        self.effects: list[Effect] = []
        self.raises: list[Event] = []
        self.appends: list[Append] = []

    def move(self) -> Move[dict[str, Any]]:
        return Move(self.data, tuple(self.effects), tuple(self.appends), tuple(self.raises))

    def complain(self, wrong: Wrong) -> None:
        """Raise the error, as an event of the document."""
        about: dict[str, Any] = {"reason": str(wrong)}
        if wrong.tag is not None:
            about |= {"tagname": wrong.tag.name, "line": wrong.tag.line, "column": wrong.tag.column}
        self.raises.append(Message(wrong.name, about, "platform", wrong.sendid))

    # expressions

    def value(self, source: str, *, aside: bool = False) -> Answer:
        """The value of an expression."""
        known = literal(source)
        if known is not None:
            return known
        script = self._script(f"({source.rstrip('; ')}\n)")
        return self._asked(Aside(script) if aside else script, self._scope())

    def holds(self, source: str) -> bool:
        """Whether a condition holds."""
        stripped = source.strip()
        if stripped in ("true", "false"):
            return stripped == "true"
        if found := _IN.fullmatch(stripped):
            return (found[1] or found[2] or "") in self.moment.active
        answer = self._asked(self._script(f"!!({source}\n)"), self._scope())
        return isinstance(answer, Value) and answer.value is True

    def text(self, tag: Tag, name: str) -> str | None:
        """An attribute or, where the document gives an expression instead, that expression's value as text."""
        given = tag.get(name)
        source = tag.get(name + "expr")
        if given is not None or source is None:
            return given
        answer = self.value(source)
        if isinstance(answer, Value) and isinstance(answer.value, str):
            return answer.value
        raise Wrong(f"{name}expr gave no text")

    def read(self, location: str) -> Answer:
        """The value at a location of the data model."""
        name = location.strip()
        if not _VARIABLE.fullmatch(name) or name.startswith("_"):
            return self.value(location)
        if name in self.data:
            return Value(self.data[name])
        if name in self.model.declared:
            return Absent()
        raise Wrong(f"{name} is not declared")

    def assign(self, location: str, answer: Answer) -> None:
        """Give a location of the data model a value."""
        name = location.strip()
        if name.startswith("_"):
            raise Wrong(f"{name} belongs to the platform and cannot be assigned")
        first = _VARIABLE.match(name)
        if first is None or first[0] not in (self.data.keys() | self.model.declared.keys()):
            raise Wrong(f"{name} does not begin with a variable that is declared")
        if first[0] == name:
            self.put(name, answer)
        else:
            self.execute(f"{location} = _x.value", answer)

    def put(self, name: str, answer: Answer) -> None:
        """Give a variable a value; it need not exist before."""
        if isinstance(answer, Value):
            self.data[name] = answer.value
        else:
            self.data.pop(name, None)

    def execute(self, source: str, answer: Answer | None = None) -> None:
        """Run statements; the variables and functions that they leave behind are there afterwards."""
        scope = self._scope()
        known = {*self.data, *self.model.declared, *self.data.get("_functions", {})}
        scope["_x"]["names"] = sorted(name for name in known if not name.startswith("_"))
        if isinstance(answer, Value):
            scope["_x"]["value"] = answer.value
        after = self._asked(self._script(_STATEMENTS.replace("SOURCE", json.dumps(source)), source), scope)
        if not isinstance(after, Value) or not isinstance(after.value, Mapping):
            raise Wrong("the script engine did not give the variables back")
        left = dict(after.value)
        functions = left.pop("_functions", {})
        self.data = {name: value for name, value in self.data.items() if name.startswith("_")} | left
        if functions:
            self.data["_functions"] = {**self.data.get("_functions", {}), **functions}
            self.scripts = [*self.scripts, *_definitions(functions)]

    def _asked(self, script: str, scope: dict[str, Any]) -> Answer:
        answer = self.moment.evaluate(script, scope)
        if isinstance(answer, Failed):
            raise Wrong(answer.reason)
        return answer

    def _script(self, source: str, within: str = "") -> str:
        """A script that any engine can run as it stands; what stands before it makes up for what JSON cannot say."""
        text = within or source
        absent = [name for name in self.model.declared if name not in self.data and _VARIABLE.fullmatch(name)]
        absent = [name for name in absent if name in text or self.scripts]
        before = f"var {', '.join(absent)};\n" if absent else ""
        if "_event" in text or self.scripts:
            before += "var _event;\n" if isinstance(self.event, Started) else _EVENT
        if self.scripts:
            before += _FUNCTIONS
        if self._trees():
            before += TREES
        before += "".join(f"{name} = {system};\n" for name, system in self._standing_for(text))
        if "In" in text or self.scripts:
            before += "function In(id) { return _x.active.includes(id); }\n"
        return before + source

    def _standing_for(self, text: str) -> Iterator[tuple[str, str]]:
        """Variables that were assigned a system variable: in JavaScript they would be the same object."""
        system = self._system()
        for name, value in self.data.items():
            if isinstance(value, dict) and name in text and _VARIABLE.fullmatch(name):
                yield from (
                    (name, variable) for variable in ("_event", "_ioprocessors") if system.get(variable) == value
                )

    def _scope(self) -> dict[str, Any]:
        variables = {name: value for name, value in self.data.items() if not name.startswith("_")}
        about: dict[str, Any] = {"active": sorted(self.moment.active)}
        if self.scripts:
            about |= {"scripts": list(self.scripts), "data": variables}
        if trees := self._trees():
            found = {text: tree for inside in trees.values() for text, tree in inside}
            about |= {"marked": list(trees), "trees": found}
        return {**variables, **self._system(), "_x": about}

    def _trees(self) -> dict[str, list[tuple[str, Mapping[str, Any]]]]:
        """The names behind which a script finds markup, with the trees that it is to see."""
        named = {**self.data, "_event": getattr(self.event, "data", None)}
        found = {name: list(trees_in(value)) for name, value in named.items()}
        return {name: trees for name, trees in found.items() if trees}

    def _system(self) -> dict[str, Any]:
        location = {"location": f"#_scxml_{self.session}"}
        found: dict[str, Any] = {
            "_name": self.model.name,
            "_sessionid": self.session,
            "_ioprocessors": {"scxml": location, PROCESSOR: location},
        }
        return found if isinstance(self.event, Started) else {**found, "_event": event_object(self.event)}

    # ids

    @property
    def session(self) -> str:
        found: str = self.data.get("_sessionid", self.model.name)
        return found

    def new_id(self, prefix: str) -> str:
        self.data["_ids"] = self.data.get("_ids", 0) + 1
        return f"{prefix}.{self.data['_ids']}"

    def id_of(self, tag: Tag, prefix: str) -> str:
        """The id that a document gives, or a new one, kept where `idlocation` says."""
        given = tag.get("id")
        location = tag.get("idlocation")
        if given is not None:
            return given
        id = self.new_id(prefix)
        if location is not None:
            self.assign(location, Value(id))
        return id


def _definitions(functions: Mapping[str, str]) -> Iterator[str]:
    return (f"{name} = {text}" for name, text in functions.items())


_EVENT = """\
["name", "type", "sendid", "origin", "origintype", "invokeid", "data"].forEach(function (name) {
  if (!(name in _event)) _event[name] = undefined;
});
"""
_FUNCTIONS = """\
_x.scripts.forEach(function (source) { try { (0, eval)(source); } catch (error) {} });
Object.assign(globalThis, _x.data);
"""
_STATEMENTS = """\
(function (source) {
  var before = new Map(Object.entries(globalThis)), after = {}, functions = {};
  (0, eval)(source);
  Object.keys(globalThis).forEach(function (name) {
    var value = globalThis[name];
    if (name[0] === "_" || (typeof value === "function" && value === before.get(name))) return;
    if (typeof value === "function") functions[name] = String(value);
    else if (_x.names.includes(name) || !before.has(name)) after[name] = value;
  });
  return Object.keys(functions).length ? Object.assign(after, { _functions: functions }) : after;
})(SOURCE)"""


def event_object(event: Event) -> dict[str, Any]:
    """An event as a document sees it: `_event`."""
    match event:
        case Message():
            found = {field.name: getattr(event, field.name) for field in fields(event)}
            return {name: value for name, value in found.items() if value is not None and value != ""}
        case Named(name=name, data=data):
            platform = matches("done.state", name) or matches("error", name)
            about = {"name": name, "type": "platform" if platform else "external"}
            return about if data is None else {**about, "data": data}
        case ExecutionFailed(where=where, reason=reason):
            return {"name": event.name, "type": "platform", "data": {"where": where, "reason": reason}}
        case _:
            return {"name": event.name, "type": "external", "data": encode(event)}


# elements

Doing = Callable[[Flow], None]
Doings = tuple[tuple[Tag, Doing], ...]


def run_all(flow: Flow, doings: Doings) -> None:
    """Run elements in order; the first that goes wrong says which one it was."""
    for tag, doing in doings:
        try:
            doing(flow)
        except Wrong as wrong:
            wrong.tag = wrong.tag or tag
            raise


def run_block(flow: Flow, doings: Doings) -> None:
    """Run a block: an error ends it and becomes an event."""
    try:
        run_all(flow, doings)
    except Wrong as wrong:
        flow.complain(wrong)


def block(model: Model, tags: Iterable[Tag], role: str = "block") -> Content:
    """A block of executable content as one move."""
    tags = tuple(tags)
    label = "; ".join(map(brief, tags)) or role
    return Content(acting(model, compile_content(tags)), label, emits=emits(tags), role=role, tags=tags)


def acting(model: Model, doings: Doings) -> Callable[[Any, Event, Moment], Move[dict[str, Any]]]:
    """The move that runs some elements as one block."""

    def run(data: Any, event: Event, moment: Moment) -> Move[dict[str, Any]]:
        flow = Flow(model, data, event, moment)
        run_block(flow, doings)
        return flow.move()

    return run


def emits(tags: Iterable[Tag], times: int = 1) -> dict[str, int]:
    """The effects that a block may want at most; in a loop, any number."""
    found: dict[str, int] = {}
    for tag in tags:
        kinds = {"send": (Send.kind, Post.kind), "cancel": (CancelSend.kind,)}.get(tag.name, ())
        for kind in kinds:
            found[kind] = found.get(kind, 0) + times
        for kind, most in emits(tag.tags, MANY if tag.name == "foreach" else times).items():
            found[kind] = found.get(kind, 0) + most
    return found


def compile_content(tags: Iterable[Tag]) -> Doings:
    """What some elements do."""
    return tuple((tag, _ELEMENTS[tag.name](tag)) for tag in tags)


def _raise(tag: Tag) -> Doing:
    name = tag.attributes["event"]
    return lambda flow: flow.raises.append(Message(name, type="internal"))


def _log(tag: Tag) -> Doing:
    label, source = tag.get("label") or "", tag.get("expr")

    def doing(flow: Flow) -> None:
        answer = flow.value(source, aside=True) if source is not None else Absent()
        said = {"label": label} | ({"value": answer.value} if isinstance(answer, Value) else {})
        flow.appends.append(Append("log", said))

    return doing


def _assign(tag: Tag) -> Doing:
    location, source = tag.attributes["location"], tag.get("expr")
    given = inline(tag)
    return lambda flow: flow.assign(location, flow.value(source) if source is not None else given)


def _script(tag: Tag) -> Doing:
    source = tag.text
    return lambda flow: flow.execute(source)


def _if(tag: Tag) -> Doing:
    branches: list[tuple[Tag | None, list[Tag]]] = [(tag, [])]
    for child in tag.tags:
        if child.name in ("elseif", "else"):
            branches.append((child if child.name == "elseif" else None, []))
        else:
            branches[-1][1].append(child)
    choices = [(condition, compile_content(inside)) for condition, inside in branches]

    def doing(flow: Flow) -> None:
        for condition, doings in choices:
            if condition is None or _holds(flow, condition):
                run_all(flow, doings)
                return

    return doing


def _holds(flow: Flow, tag: Tag) -> bool:
    """A condition that goes wrong raises its error and counts as false."""
    try:
        return flow.holds(tag.attributes["cond"])
    except Wrong as wrong:
        wrong.tag = tag
        flow.complain(wrong)
        return False


def _foreach(tag: Tag) -> Doing:
    source, item, index = tag.attributes["array"], tag.attributes["item"], tag.get("index")
    doings = compile_content(tag.tags)

    def doing(flow: Flow) -> None:
        for name in (item, index):
            if name is not None and (
                not _VARIABLE.fullmatch(name) or _RESERVED.fullmatch(name) or name.startswith("_")
            ):
                raise Wrong(f"{name} is not a name for a variable")
        answer = flow.value(source)
        if not isinstance(answer, Value) or not isinstance(answer.value, list):
            raise Wrong(f"{source} is not an array")
        for position, value in enumerate(answer.value):
            flow.put(item, Value(value))
            if index is not None:
                flow.put(index, Value(position))
            run_all(flow, doings)

    return doing


def _cancel(tag: Tag) -> Doing:
    def doing(flow: Flow) -> None:
        flow.effects.append(CancelSend(flow.text(tag, "sendid") or ""))

    return doing


# sending


def _send(tag: Tag) -> Doing:
    named = tag.get("id") is not None or tag.get("idlocation") is not None

    def doing(flow: Flow) -> None:
        id = flow.id_of(tag, "send") if named else ""
        try:
            delay, target = seconds(flow.text(tag, "delay") or "0"), flow.text(tag, "target") or ""
            name = flow.text(tag, "event") or ""
            if (kind := flow.text(tag, "type") or "") not in PROCESSORS:
                raise Wrong(f"there is no event processor {kind!r}")
            data = payload(flow, tag)
            _reachable(flow, target)
            _dispatch(flow, Named(name, data), target=target, delay=delay, id=id)
        except Wrong as wrong:
            wrong.sendid = id
            raise

    return doing


def _reachable(flow: Flow, target: str) -> None:
    """Refuse a target that is not an address, or at which nobody is known."""
    if target in ("", "#_internal"):
        return
    if not target.startswith("#_"):
        raise Wrong(f"{target!r} is not a target; those of sessions begin with #_")
    invoked: Sequence[str] = flow.data.get("_invoked", ())
    known = {f"#_scxml_{flow.session}", *(f"#_{id}" for id in invoked)}
    known |= {f"#_scxml_{flow.session}.{id}" for id in invoked}
    if "_parent" in flow.data:
        known |= {"#_parent", f"#_scxml_{flow.data['_parent']}"}
    if target not in known:
        raise Wrong(f"nobody is known at {target!r}", name="error.communication")


def _dispatch(flow: Flow, event: Named, *, target: str, delay: float, id: str) -> None:
    """Put a message where it belongs: on the internal queue, on the session's own, or on its way to another."""
    own = f"#_scxml_{flow.session}"
    if target == "#_internal":
        if delay:
            raise Wrong("an internal event cannot be delayed")
        flow.raises.append(Message(event.name, event.data, "internal", id))
        return
    to_parent = target in ("#_parent", f"#_scxml_{flow.data.get('_parent')}")
    invokeid = flow.data.get("_invokeid", "") if to_parent else ""
    message = Message(event.name, event.data, "external", id, own, PROCESSOR, invokeid)
    if target in ("", own):
        flow.effects.append(Send(message, delay, id))
    else:
        flow.effects.append(Post(target, message, delay, id))


def payload(flow: Flow, tag: Tag) -> Any:
    """The data that `<send>` or `<donedata>` say to pass on; None where they say nothing."""
    for child in tag.tags:
        if child.name == "content":
            answer = _content(flow, child)
            return answer.value if isinstance(answer, Value) else None
    return parameters(flow, tag)


def parameters(flow: Flow, tag: Tag) -> Any:
    """The values of `namelist` and `<param>` by name; None where there are none."""
    names = (tag.get("namelist") or "").split()
    params = [child for child in tag.tags if child.name == "param"]
    if not names and not params:
        return None
    answers = [(name, flow.read(name)) for name in names] + _params(flow, params)
    return {name: answer.value for name, answer in answers if isinstance(answer, Value)} or None


def _content(flow: Flow, tag: Tag) -> Answer:
    source = tag.get("expr")
    return flow.value(source) if source is not None else inline(tag)


def _params(flow: Flow, tags: Iterable[Tag]) -> list[tuple[str, Answer]]:
    """Names and values; a parameter that goes wrong raises its error and is left out."""
    found = []
    for tag in tags:
        source, location = tag.get("expr"), tag.get("location")
        try:
            answer = flow.value(source) if source is not None else flow.read(location or "")
            found.append((tag.attributes["name"], answer))
        except Wrong as wrong:
            wrong.tag = tag
            flow.complain(wrong)
    return found


# invoking


def invocation(model: Model, tag: Tag, state: str, *, machine: str | None, finalize: str) -> Content:
    """The move that starts an invoked session, once the run has come to rest in its state."""

    def doing(flow: Flow) -> None:
        id = flow.id_of(tag, state)
        if (kind := flow.text(tag, "type") or "") not in INVOCATIONS:
            raise Wrong(f"there is nothing to invoke of type {kind!r}")
        name = machine or flow.text(tag, "src") or _markup(flow, tag)
        data = parameters(flow, tag)
        flow.data["_invoked"] = [*flow.data.get("_invoked", ()), id]
        flow.effects.append(Invoke(name, data, id, forward=tag.get("autoforward") == "true", finalize=finalize))

    run = acting(model, ((tag, doing),))
    return Content(run, brief(tag), emits={Invoke.kind: 1}, late=True, role="invoke", tags=(tag,))


def _markup(flow: Flow, tag: Tag) -> str:
    for child in tag.tags:
        if child.name == "content":
            answer = _content(flow, child)
            text = (text_of(answer.value) or answer.value) if isinstance(answer, Value) else None
            if isinstance(text, str):
                return text
    raise Wrong("there is no document to invoke")


def finalizing(model: Model, invoke: Tag, finalize: Tag) -> Content:
    """The move that takes over what an invoked session sent, and raises it for the other rows."""
    doings = compile_content(finalize.tags) or ((finalize, _taking_over(invoke)),)

    def run(data: Any, event: Event, moment: Moment) -> Move[dict[str, Any]]:
        flow = Flow(model, data, event, moment)
        if isinstance(event, Finalize):
            flow.raises.append(event.cause)
        run_block(flow, doings)
        return flow.move()

    return Content(run, brief(finalize), emits=emits(finalize.tags), role="finalize", tags=(finalize,))


def _taking_over(invoke: Tag) -> Doing:
    """What an empty `<finalize>` does: variables that were given to the session take the values that it sent."""
    pairs = [(name, name) for name in (invoke.get("namelist") or "").split()]
    pairs += [
        (child.attributes["name"], child.attributes["location"]) for child in invoke.tags if child.get("location")
    ]

    def doing(flow: Flow) -> None:
        data = getattr(flow.event, "data", None)
        for name, location in pairs:
            if isinstance(data, Mapping) and name in data:
                flow.assign(location, Value(data[name]))

    return doing


_ELEMENTS: dict[str, Callable[[Tag], Doing]] = {
    "raise": _raise,
    "log": _log,
    "assign": _assign,
    "script": _script,
    "if": _if,
    "foreach": _foreach,
    "cancel": _cancel,
    "send": _send,
}


def without_engine(script: Any, scope: Any) -> Answer:
    """What a driver without a script engine answers: nothing where nothing depends on it, else a refusal."""
    if isinstance(script, Aside):
        return Absent()
    raise DefinitionError(f"this document needs a script engine for {' '.join(str(script).split())[-80:]}")
