"""SCXML documents as machines, and machines as SCXML documents.

`read` gives an ordinary machine: states, rows, `errors="scxml"`, and a dict as data. What the document does is in
`scxml_content`, how its sessions run and talk is in `scxml_session`. Nothing is executed while a document is read.

- A document that says what no document may say is refused, with file and line (`scxml_grammar`); so is a target that
  does not exist, a name used twice, and two targets that cannot be active together.
- Variables get their values before anything else happens: every outermost state begins with the move "datamodel",
  which does nothing the second time. With late binding, a state's own data get theirs when it is first entered.
- Each `<onentry>` and `<onexit>` is a block of its own. `<invoke>` is a late move: it happens when nothing else is
  left to do, and not at all where its state was left by then.
- A row for "*" takes every event of the document and none of the runtime's, so that a run can be cancelled. While
  an event from an invoked session is finalized, no other row is tried; the event itself comes next, and then what
  went wrong in between.

`write` gives a document with the same states, rows, events and targets. Guards and moves that came from a document
go back as they were; those written in Python appear by name, in attributes of Moothall's own namespace.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from xml.sax.saxutils import quoteattr

from moothall.errors import DefinitionError
from moothall.interop.scxml_content import (
    SCXML,
    Content,
    Finalize,
    Flow,
    Model,
    Wrong,
    block,
    compile_content,
    finalizing,
    inline,
    invocation,
    literal,
    of_file,
    payload,
    run_block,
)
from moothall.interop.scxml_grammar import NODES, check
from moothall.interop.scxml_markup import Tag, brief, parse, render
from moothall.kernel.chart import ROOT, Chart, Place, Row, sequence
from moothall.kernel.events import Cancelled, Event, Exhausted
from moothall.kernel.machine import Machine, label
from moothall.kernel.nodes import Action, Actions, Final, History, Names, Node, On, Parallel, State, always, anywhere
from moothall.kernel.step import Moment, Move, Value

MOOT = "urn:moothall:scxml"
Fetch = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Document:
    """What a document describes: its machine, and the machines inside it that it may invoke, by name."""

    machine: Machine
    children: Mapping[str, Machine] = field(default_factory=dict)


def read(text: str, *, file: str = "document", fetch: Fetch | None = None) -> Document:
    """The machine that an SCXML document describes. `fetch` gives the text behind a `src` attribute."""
    return _Reader(parse(text, file), file, fetch).document()


class _Reader:
    """Reads one document, and those inside it."""

    def __init__(self, root: Tag, file: str, fetch: Fetch | None) -> None:
        self.root = root
        self.file = file
        self.fetch = fetch
        self.model = Model(root.get("name") or file)
        self.moves: list[On] = []
        self.children: dict[str, Machine] = {}
        self.names: dict[int, str] = {}
        self.paths: dict[str, tuple[Tag, ...]] = {}
        self.finalizes = 0

    def wrong(self, tag: Tag, reason: str) -> DefinitionError:
        return DefinitionError(f"{self.file}, line {tag.line}: {reason}")

    def document(self) -> Document:
        root = self.root
        if (root.name, root.space) != ("scxml", SCXML):
            raise self.wrong(root, f"the outermost element is not <scxml> of the namespace {SCXML}")
        check(root, self.file)
        self.learn_names()
        begin = self.datamodel()
        self.moves += [self.row(child, anywhere) for child in root.tags if _is(child, "transition")]
        states = [self.node(tag, (begin,)) for tag in _nodes(root)]
        if not states:
            raise self.wrong(root, "there is no state")
        start = self.targets(root, "initial")
        try:
            machine = Machine(self.model.name, states=states, moves=self.moves, start=start, data=dict, errors="scxml")
        except DefinitionError as error:
            raise self.wrong(root, str(error)) from error
        return Document(machine, self.children)

    # names and targets

    def learn_names(self) -> None:
        every = list(_walk(self.root, ()))
        given = {tag.get("id") for tag, _ in every}
        for tag, path in every:
            name = tag.get("id") or _unused_name(tag.name, given)
            if name in self.paths:
                raise self.wrong(
                    tag, f"a second state is called {name!r}; the first is in line {self.paths[name][-1].line}"
                )
            given.add(name)
            self.names[id(tag)] = name
            self.paths[name] = (*path, tag)

    def targets(self, tag: Tag, attribute: str) -> tuple[str, ...] | None:
        """The states that an attribute names, if they exist and can be active together."""
        text = tag.get(attribute)
        if text is None:
            return None
        names = tuple(text.split())
        for name in names:
            if name not in self.paths:
                raise self.wrong(tag, f"{attribute} names the unknown state {name!r}")
        for position, name in enumerate(names):
            for other in names[:position]:
                if _exclusive(self.paths[name], self.paths[other]):
                    raise self.wrong(tag, f"{other!r} and {name!r} cannot be active together")
        return names

    # states

    def node(self, tag: Tag, begin: tuple[Content, ...] = ()) -> Node:
        name = self.names[id(tag)]
        if tag.name == "history":
            return self.history(tag, name)
        enter = (*begin, *self.own_data(tag), *self.blocks(tag, "onentry"))
        exit = tuple(self.blocks(tag, "onexit"))
        if tag.name == "final":
            check_first, result = self.donedata(tag)
            return Final(name, result=result, enter=(*enter, *check_first), exit=exit)
        enter += tuple(self.invokes(tag, name))
        self.moves += [self.row(child, name) for child in tag.tags if _is(child, "transition")]
        inner = [self.node(child) for child in _nodes(tag)]
        if tag.name == "parallel" and any(not isinstance(node, History) for node in inner):
            return Parallel(name, inner, enter=enter, exit=exit)
        start, starting = self.beginning(tag)
        return State(name, inner, start=start, starting=starting, enter=enter, exit=exit)

    def history(self, tag: Tag, name: str) -> History:
        [transition] = (child for child in tag.tags if _is(child, "transition"))
        default = self.targets(transition, "target") or ()
        around = self.paths[name][:-1]
        for target in default:
            if self.paths[target][: len(around)] != around or self.paths[target] == around:
                raise self.wrong(
                    transition, f"the history of a state cannot lead to {target!r}, which is not inside it"
                )
        return History(name, default, deep=tag.get("type") == "deep", do=self.content(transition))

    def beginning(self, tag: Tag) -> tuple[tuple[str, ...] | None, tuple[Content, ...]]:
        for child in tag.tags:
            if _is(child, "initial"):
                [transition] = (inner for inner in child.tags if _is(inner, "transition"))
                return self.targets(transition, "target"), self.content(transition)
        return self.targets(tag, "initial"), ()

    def blocks(self, tag: Tag, name: str) -> Iterator[Content]:
        for child in tag.tags:
            if _is(child, name):
                yield from self.content(child)

    def content(self, tag: Tag) -> tuple[Content, ...]:
        inside = tuple(self.loaded(child) for child in tag.tags)
        return (block(self.model, inside),) if inside else ()

    def loaded(self, tag: Tag) -> Tag:
        """A tag with what it takes from elsewhere put inside."""
        if tag.get("src") is not None and tag.name == "script":
            return Tag("script", SCXML, {}, (self.fetched(tag),), tag.line, tag.column)
        if tag.name not in ("if", "foreach"):
            return tag
        inside = tuple(self.loaded(part) if isinstance(part, Tag) else part for part in tag.inside)
        return Tag(tag.name, tag.space, tag.attributes, inside, tag.line, tag.column)

    def fetched(self, tag: Tag) -> str:
        source = tag.get("src") or ""
        if self.fetch is None:
            raise self.wrong(tag, f"nothing here can fetch {source!r}")
        try:
            return self.fetch(source)
        except (OSError, ValueError) as error:
            raise self.wrong(tag, f"{source!r} cannot be fetched: {error}") from error

    # rows

    def row(self, tag: Tag, state: str) -> On:
        event = tag.get("event")
        return On(
            state,
            always if event is None else event,
            to=self.targets(tag, "target"),
            when=self.guard(tag),
            do=self.content(tag),
            internal=tag.get("type") == "internal",
        )

    def guard(self, tag: Tag) -> Content | None:
        condition, model = tag.get("cond"), self.model
        barred: tuple[type[Event], ...] = (Finalize,) if self.finalizes else ()
        if {"*", ".*"} & set((tag.get("event") or "").split()):
            barred += (Cancelled, Exhausted)
        if condition is None and not barred:
            return None

        def holds(data: Any, event: Event, moment: Moment) -> bool:
            if isinstance(event, barred):
                return False
            return condition is None or Flow(model, data, event, moment).holds(condition)

        return Content(holds, condition or "not of the runtime", role="condition", tags=(tag,))

    # data

    def datamodel(self) -> Content:
        """The move that gives variables their first values."""
        every = [(tag, path) for tag, path in _walk(self.root, ()) if tag.name != "history"]
        outer = list(_data(self.root))
        inner = [data for tag, _ in every for data in _data(tag)]
        scripts = [self.loaded(child) for child in self.root.tags if _is(child, "script")]
        model = self.model
        model.declared |= dict.fromkeys(data.attributes["id"] for data in (*outer, *inner))
        functions = [data for data in (*outer, *inner) if _is_function(data)]
        model.scripts += [f"{function.attributes['id']} = {function.attributes['expr']}" for function in functions]
        model.scripts += [script.text for script in scripts]
        self.finalizes = sum(
            1 for tag, _ in every for child in tag.tags if _is(child, "invoke") for _ in _finalize(child)
        )
        early = [] if self.root.get("binding") == "late" else [self.value(data) for data in inner]
        values = [*(self.value(data, overridable=True) for data in outer), *early]

        def run(data: Any, event: Event, moment: Moment) -> Move[dict[str, Any]]:
            if "_ids" in data:
                return Move(data)
            flow = Flow(model, {"_sessionid": model.name, **data, "_ids": 0}, event, moment)
            flow.data = {name: value for name, value in flow.data.items() if name.startswith("_")}
            for give in values:
                give(flow, data)
            for position, script in enumerate(scripts):
                flow.scripts = model.scripts[: len(functions) + position]
                run_block(flow, compile_content((script,)))
            flow.data.pop("_functions", None)  # these scripts come before every other one anyway
            return flow.move()

        text = " ".join(map(brief, (*outer, *inner, *scripts)))
        return Content(run, f"datamodel {text}".strip(), role="datamodel", tags=(*outer, *scripts))

    def own_data(self, tag: Tag) -> Iterator[Content]:
        """The move that gives a state's data their values when it is first entered, where binding is late."""
        tags = tuple(_data(tag))
        if not tags:
            return
        values = [self.value(data) for data in tags] if self.root.get("binding") == "late" else []
        model, name = self.model, self.names[id(tag)]

        def run(data: Any, event: Event, moment: Moment) -> Move[dict[str, Any]]:
            bound: list[str] = data.get("_bound", [])
            if not values or name in bound:
                return Move(data)
            flow = Flow(model, {**data, "_bound": [*bound, name]}, event, moment)
            for give in values:
                give(flow, {})
            return flow.move()

        role = "late data" if values else "data"
        yield Content(run, f"datamodel {' '.join(map(brief, tags))}", role=role, tags=tags)

    def value(self, tag: Tag, *, overridable: bool = False) -> Callable[[Flow, Mapping[str, Any]], None]:
        """How a variable gets its first value; whoever starts the session may have given another one."""
        name, source = tag.attributes["id"], tag.get("expr")
        missing, given = "", inline(tag)
        if tag.get("src") is not None:
            try:
                given = of_file(self.fetched(tag))
            except DefinitionError as error:
                missing = str(error)

        def doing(flow: Flow) -> None:
            if missing:
                raise Wrong(missing)
            if not _is_function(tag):
                flow.put(name, flow.value(source) if source is not None else given)

        def give(flow: Flow, outside: Mapping[str, Any]) -> None:
            if overridable and name in outside:
                flow.put(name, Value(outside[name]))
            else:
                run_block(flow, ((tag, doing),))

        return give

    def donedata(self, tag: Tag) -> tuple[tuple[Content, ...], Content | None]:
        """The outcome of a final state, and the move before it that raises the errors of its parameters."""
        model = self.model
        for child in tag.tags:
            if _is(child, "donedata"):
                done = child
                break
        else:
            return (), None

        def result(data: Any, event: Event, moment: Moment) -> Any:
            return payload(Flow(model, data, event, moment), done)

        def first(data: Any, event: Event, moment: Moment) -> Move[dict[str, Any]]:
            flow = Flow(model, data, event, moment)
            payload(flow, done)
            return Move(data, raises=tuple(flow.raises))

        params = [child for child in done.tags if child.name == "param"]
        unsure = any(param.get("expr") is None or literal(param.attributes["expr"]) is None for param in params)
        checks = (Content(first, f"check {brief(done)}", role="check"),) if unsure else ()
        return checks, Content(result, brief(done), role="donedata", tags=(done,))

    # invoked sessions

    def invokes(self, tag: Tag, state: str) -> Iterator[Content]:
        for number, invoke in enumerate(child for child in tag.tags if _is(child, "invoke")):
            finalize = ""
            for inner in _finalize(invoke):
                finalize = f"moot.finalize.{state}.{number}"
                self.moves.append(On(state, finalize, do=finalizing(self.model, invoke, inner)))
            yield invocation(self.model, invoke, state, machine=self.inside(invoke), finalize=finalize)

    def inside(self, invoke: Tag) -> str | None:
        """The name of the machine that stands inside an invocation."""
        for content in invoke.tags:
            for root in content.tags if _is(content, "content") else ():
                name = f"{self.file}#{root.line}:{root.column}"
                document = _Reader(root, self.file, self.fetch).document()
                self.children |= {name: document.machine, **document.children}
                return name
        return None


def _is(tag: Tag, name: str) -> bool:
    return tag.name == name and tag.space == SCXML


def _nodes(tag: Tag) -> list[Tag]:
    return [child for child in tag.tags if child.space == SCXML and child.name in NODES]


def _walk(tag: Tag, path: tuple[Tag, ...]) -> Iterator[tuple[Tag, tuple[Tag, ...]]]:
    """All states inside, in document order, with the states around them."""
    for node in _nodes(tag):
        yield node, path
        yield from _walk(node, (*path, node))


def _data(tag: Tag) -> Iterator[Tag]:
    for model in tag.tags:
        if _is(model, "datamodel"):
            yield from (child for child in model.tags if _is(child, "data"))


def _is_function(data: Tag) -> bool:
    """Whether a variable holds a function. JSON has none: it is kept with the document's scripts."""
    return bool(re.match(r"\s*function\b", data.get("expr") or ""))


def _finalize(invoke: Tag) -> Iterator[Tag]:
    return (child for child in invoke.tags if _is(child, "finalize"))


def _unused_name(stem: str, names: set[str | None]) -> str:
    number = 1
    while f"{stem}{number}" in names:
        number += 1
    return f"{stem}{number}"


def _exclusive(one: tuple[Tag, ...], other: tuple[Tag, ...]) -> bool:
    """Whether two states, given with the states around them, can never be active at once."""
    common = 0
    while common < min(len(one), len(other)) and one[common] is other[common]:
        common += 1
    if common == min(len(one), len(other)):
        return False
    return common == 0 or one[common - 1].name != "parallel"


# writing


def write(machine: Machine) -> str:
    """An SCXML document with the states, rows, events and targets of a machine."""
    writer = _Writer(machine.chart)
    body = "\n".join(writer.root(machine))
    if " moot:" in body:
        body = body.replace(" version=", f' xmlns:moot="{MOOT}" version=', 1)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'


class _Writer:
    """Writes the states of one chart, line by line."""

    def __init__(self, chart: Chart) -> None:
        self.chart = chart
        self.everywhere: Sequence[Row] = chart.places[ROOT].rows

    def root(self, machine: Machine) -> Iterator[str]:
        outermost = [self.chart.places[index] for index in self.chart.places[ROOT].children]
        contents = [content for place in self.chart.places for content in _contents(place.node, "enter")]
        attributes = {
            "name": machine.name,
            "datamodel": "ecmascript" if machine.errors == "scxml" else "null",
            "binding": "late" if any(content.role == "late data" for content in contents) else None,
            "initial": _words(machine.start),
        }
        yield f'<scxml xmlns="{SCXML}" version="1.0"{_attribute_text(attributes)}>'
        for content in [content for content in contents if content.role == "datamodel"][:1]:
            yield from _datamodel(content.tags, "  ")
            yield from (f"  {render((child,), SCXML)}" for child in content.tags if child.name == "script")
            yield from (self.row(row, "  ") for row in self.everywhere)
            self.everywhere = []
        for place in outermost:
            yield from self.state(place, "  ")
        yield "</scxml>"

    def state(self, place: Place, indent: str) -> Iterator[str]:
        node = place.node
        name = "state" if isinstance(node, State) else type(node).__name__.lower()
        start = _words(node.start) if isinstance(node, State) and not node.starting else None
        attributes = {"id": _identifier(node.name), "initial": start, **_notes(node)}
        inside = list(self.inside(place, indent + "  "))
        if not inside:
            yield f"{indent}<{name}{_attribute_text(attributes)}/>"
            return
        yield f"{indent}<{name}{_attribute_text(attributes)}>"
        yield from inside
        yield f"{indent}</{name}>"

    def inside(self, place: Place, indent: str) -> Iterator[str]:
        node = place.node
        if isinstance(node, History):
            yield _transition({"target": _words(node.default)}, node.do, indent)
            return
        for content in _contents(node, "enter"):
            if content.role in ("data", "late data"):
                yield from _datamodel(content.tags, indent)
        if isinstance(node, State) and node.starting:
            yield f"{indent}<initial>"
            yield _transition({"target": _words(node.start) or self.first(place)}, node.starting, indent + "  ")
            yield f"{indent}</initial>"
        for attribute, element in (("enter", "onentry"), ("exit", "onexit")):
            for content in _contents(node, attribute):
                if content.role == "block":
                    yield f"{indent}<{element}>{render(content.tags, SCXML)}</{element}>"
        for row in (*place.rows, *(self.everywhere if place.parent == ROOT else ())):
            if not isinstance(node, Final) and not any(
                content.role == "finalize" for content in _of_document(row.on.do)
            ):
                yield self.row(row, indent)
        for content in _contents(node, "enter"):
            if content.role == "invoke":
                yield indent + render(content.tags, SCXML)
        if isinstance(node, Final) and isinstance(node.result, Content):
            yield indent + render(node.result.tags, SCXML)
        for index in sorted((*place.children, *place.histories)):
            yield from self.state(self.chart.places[index], indent)

    def first(self, place: Place) -> str:
        return self.chart.places[place.initial[0]].name

    def row(self, row: Row, indent: str) -> str:
        on = row.on
        condition = on.when.tags[0].get("cond") if isinstance(on.when, Content) else None
        attributes = {
            "event": None if row.descriptors is None else " ".join(descriptor or "*" for descriptor in row.descriptors),
            "cond": condition,
            "target": _words(on.to),
            "type": "internal" if on.internal else None,
            "moot:when": label(on.when) if on.when is not None and not isinstance(on.when, Content) else None,
            "moot:at-most": str(on.at_most) if on.at_most is not None else None,
        }
        return _transition(attributes, on.do, indent)


def _transition(attributes: dict[str, str | None], actions: Actions, indent: str) -> str:
    head = f"{indent}<transition{_attribute_text({**attributes, 'moot:do': _foreign(actions)})}"
    inside = "".join(render(content.tags, SCXML) for content in _of_document(actions))
    return f"{head}>{inside}</transition>" if inside else f"{head}/>"


def _datamodel(tags: Iterable[Tag], indent: str) -> Iterator[str]:
    data = [tag for tag in tags if tag.name == "data"]
    if data:
        yield f"{indent}<datamodel>{render(data, SCXML)}</datamodel>"


def _of_document(actions: Actions) -> list[Content]:
    return [action for action in sequence(actions) if isinstance(action, Content)]


def _contents(node: Node, attribute: str) -> list[Content]:
    return _of_document(getattr(node, attribute, ()))


def _foreign(actions: Actions) -> str | None:
    """The names of the actions that did not come from a document."""
    named: list[Action] = [action for action in sequence(actions) if not isinstance(action, Content)]
    return "; ".join(map(label, named)) or None


def _notes(node: Node) -> dict[str, str | None]:
    """What SCXML has no word for."""
    if isinstance(node, History):
        return {"type": "deep" if node.deep else None}
    notes = {"moot:enter": _foreign(node.enter), "moot:exit": _foreign(node.exit)}
    if isinstance(node, Final):
        return notes | {
            "moot:result": None if node.result is None or isinstance(node.result, Content) else label(node.result)
        }
    return notes | {"moot:max-visits": str(node.max_visits) if node.max_visits is not None else None}


def _attribute_text(attributes: Mapping[str, str | None]) -> str:
    return "".join(f" {name}={quoteattr(value)}" for name, value in attributes.items() if value is not None)


def _words(names: Names | None) -> str | None:
    if names is None:
        return None
    return " ".join(map(_identifier, (names,) if isinstance(names, str) else names))


def _identifier(name: str) -> str:
    if not name or name.split() != [name]:
        raise DefinitionError(f"the state {name!r} cannot be written as SCXML: an id has no blanks")
    return name
