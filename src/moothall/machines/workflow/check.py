"""Everything that is wrong with a workflow file, found without running anything.

First its shape, then what the shape cannot say: names that nobody can tell apart, states that lead nowhere, keys
that contradict each other or have no effect, scripts that are not JavaScript, sub-workflows that go round in circles.
Each rule looks at the plain JSON and passes over what has the wrong shape, which has been told already; so one
mistake does not hide another. Whether a text is JavaScript is a question to an engine, which the caller brings.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Literal

from moothall.kernel.frozen import Frozen
from moothall.machines.workflow.definition import START, STOP
from moothall.machines.workflow.document import Document, Problem, escape_key
from moothall.machines.workflow.names import (
    GLOBALS,
    fields_read,
    keys_read,
    keys_set,
    members_read,
    parts_named,
    parts_read,
    undeclared_names,
)
from moothall.machines.workflow.schema import SCHEMA, misfits
from moothall.machines.workflow.script import (
    LONGEST,
    PYTHON,
    assigns,
    called_functions,
    is_false,
    is_true,
    may_set,
    words,
)
from moothall.machines.workflow.shapes import unreadable
from moothall.machines.workflow.tokens import SURFACE

MOST = 5000
"""The most states that a workflow may have."""

Plain = Mapping[str, Any]
Kind = Literal["condition", "script", "input"]


class Source(Frozen):
    """A script of a file: what it is meant to be, its text and its place."""

    kind: Kind
    text: str
    pointer: str


class Around(Frozen):
    """What a file is checked against: an engine that knows JavaScript, other workflows, the roles and tools there are.

    `faults` gives for each script what is wrong with it, "" where nothing is; None means that nobody can tell. `has`
    tells whether a machine that is not a workflow is known by a name. `functions` are those that `py:NAME` can mean;
    None: nobody has named any.
    """

    faults: Callable[[Sequence[Source]], Sequence[str]] | None = None
    find: Callable[[str], Plain | None] = lambda name: None
    roles: Mapping[str, Plain] | None = None
    has: Callable[[str], bool] = lambda name: False
    functions: frozenset[str] | None = None


def find_problems(document: Document, around: Around) -> tuple[Problem, ...]:
    """All problems of a file, in the order of its lines."""
    found = list(document.problems)
    names, beside = _Names("workflow"), {_name_of(workflow): workflow for _, workflow in workflows_in(document.value)}
    if not any(problem.code in _UNREAD for problem in document.problems):
        for index, (base, workflow) in enumerate(workflows_in(document.value)):
            inner = _workflow_problems(workflow, around, beside) if isinstance(workflow, dict) else _NO_OBJECT
            named = _name_of(workflow) or f"number {index + 1}"
            for problem in (*inner, *names.told(_name_of(workflow), "/workflow_name")):
                line = document.line(base + problem.pointer)
                found.append(replace(problem, line=line, workflow=named if base else ""))
    return tuple(sorted(found, key=lambda problem: (problem.line, problem.pointer)))


def workflows_in(value: Any) -> list[tuple[str, Any]]:
    """The workflows of a file: the one that it is, or those of its array, each with its pointer."""
    if isinstance(value, list):
        return [(f"/{index}", workflow) for index, workflow in enumerate(value)] or [("", value)]
    return [("", value)]


_UNREAD = frozenset(("E_JSON", "E_ENCODING", "E_LIMIT_SIZE", "E_LIMIT_DEPTH"))
_NO_OBJECT = (Problem("error", "E_TYPE", "", "a workflow is an object", "write { … }, or an array of such objects"),)


def _name_of(workflow: Any) -> str:
    name = workflow.get("workflow_name") if isinstance(workflow, dict) else None
    return name if isinstance(name, str) else ""


def _workflow_problems(workflow: Plain, around: Around, beside: Mapping[str, Any]) -> Iterator[Problem]:
    view = _View(workflow)
    if len(view.states) > MOST:
        why = f"it has {len(view.states)} states"
        yield _error("E_LIMIT_STATES", "/states", why, f"keep below {MOST}, or use sub-workflows")
        return
    yield from misfits(workflow)
    for rule in (_names, _parts, _ways, _actions, _questions, _nesting, _roles):
        yield from rule(view, around)
    yield from _scripts(view, around)
    yield from _functions(view, around)
    yield from _sub_workflows(view, beside, around)


class _View:
    """A workflow's parts with their pointers, as far as they have the right shape."""

    def __init__(self, workflow: Plain) -> None:
        self.workflow = workflow
        self.contexts = list(_objects(workflow, "contexts", ""))
        self.agents = list(_objects(workflow, "agents", ""))
        self.top = list(_objects(workflow, "states", ""))
        self.states = list(self._all(self.top))
        self.at = dict(self.states)
        self.by_name = {name: (pointer, state) for pointer, state in self.states if (name := _text(state, "name"))}
        self.is_whole = len(self.by_name) == len(self.states)

    def is_inside(self, pointer: str) -> bool:
        """Whether a state stands inside another."""
        return pointer.count("/") > 2

    def _all(self, states: Iterable[tuple[str, Plain]]) -> Iterator[tuple[str, Plain]]:
        for pointer, state in states:
            yield pointer, state
            for key in ("states", "parallel"):
                yield from self._all(_objects(state, key, pointer))

    @cached_property
    def words(self) -> frozenset[str]:
        """Every name and string in its texts."""
        return frozenset[str]().union(*map(words, self.scripts()), *map(words, self.expressions()))

    def scripts(self) -> Iterator[str]:
        """Every text that may change common_data."""
        for _, state in self.states:
            yield from (_text(state, "on_entry"), _text(state, "on_exit"), _text(_action(state), "script"))
            yield from (_text(transition, "before") for _, transition in _objects(state, "transition", ""))

    def expressions(self) -> Iterator[str]:
        """Every other text that is evaluated."""
        for _, state in self.states:
            yield _text(state, "input")
            yield from (_text(transition, "condition") for _, transition in _objects(state, "transition", ""))
            given = _action(state).get("sub_workflow_input")
            yield from (text for text in (given.values() if isinstance(given, dict) else ()) if isinstance(text, str))


def _objects(around: Plain, key: str, pointer: str) -> Iterator[tuple[str, Plain]]:
    items = around.get(key)
    for index, item in enumerate(items if isinstance(items, list) else ()):
        if isinstance(item, dict):
            yield f"{pointer}/{key}/{index}", item


def _text(around: Plain, key: str) -> str:
    value = around.get(key)
    return value if isinstance(value, str) else ""


def _action(state: Plain) -> Plain:
    action = state.get("action")
    return action if isinstance(action, dict) else {}


def _error(code: str, pointer: str, why: str, remedy: str) -> Problem:
    return Problem("error", code, pointer, why, remedy)


def _warning(code: str, pointer: str, why: str, remedy: str) -> Problem:
    return Problem("warning", code, pointer, why, remedy)


def _twice(pointer: str, what: str, name: str) -> Problem:
    return _error("E_DUP_NAME", pointer, f"two {what}s are called {name!r}", "rename one of them")


# names

_LONGEST = 128
_DECISION = frozenset(("name", "arguments"))
"""What `function.TOOL` has."""
MEMBERS = {
    "agent": frozenset(("getLastResponse", "getToolCalls", "getParsingToolCalls", "getRole", "getContextRole")),
    "context": frozenset(("name", "messages", "max_length")),
}
"""What scripts find in an agent and in a context; a test asks the engine."""
_INHERITED = frozenset(
    (
        "__proto__",
        "__defineGetter__",
        "__defineSetter__",
        "__lookupGetter__",
        "__lookupSetter__",
        "constructor",
        "hasOwnProperty",
        "isPrototypeOf",
        "propertyIsEnumerable",
        "prototype",
        "toLocaleString",
        "toString",
        "valueOf",
    )
)
_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", *(f"{name}{digit}" for name in ("com", "lpt") for digit in range(1, 10))]
)
_LOOKALIKES = str.maketrans(
    "аАВеЕЗіІјЈКМНоОрРсСТуУхХѕЅԁһӏԛԝΑΒΕΖΗΙΚΜΝΟΡΤΥΧοαινρυκ01", "aABeE3iIjJKMHoOpPcCTyYxXsSdhlqwABEZHIKMNOPTYXoaivpukol"
)

_ACCENTS = frozenset(map(chr, range(0x300, 0x370)))


def _names(view: _View, _: Around) -> Iterator[Problem]:
    workflow = view.workflow
    if (called := _text(workflow, "workflow_name")).lower() in _DEVICES:
        yield _error("E_NAME", "/workflow_name", f"{called!r} is the name of a device on some systems", "rename it")
    if called in _INHERITED:
        yield from _name_problems(called, "/workflow_name")
    for key in ("input", "output"):
        if isinstance(part := workflow.get(key), dict) and isinstance(part.get("name"), str):
            yield from _name_problems(part["name"], f"/{key}/name")
    yield from _named_list(view.contexts, "name", "context", _CONTAINER)
    yield from _named_list(view.agents, "agent_role", "agent", _CONTAINER)
    yield from _named_list(view.states, "name", "state", frozenset("*"), (STOP,))
    variables = workflow.get("variables")
    if isinstance(variables, dict):
        yield from _variable_names(variables, _text_of_input(workflow))


_CONTAINER = frozenset(("get", "has", "size", "keys", "values", "entries", "forEach"))


def _text_of_input(workflow: Plain) -> str:
    given = workflow.get("input")
    return _text(given, "name") if isinstance(given, dict) else ""


def _name_problems(name: str, pointer: str, reserved: frozenset[str] = frozenset()) -> Iterator[Problem]:
    if name in _INHERITED or name in reserved:
        yield _error("E_NAME", pointer, f"every object of JavaScript has something called {name!r}", "rename it")
    elif not name.strip() or name != name.strip() or not name.isprintable() or len(name) > _LONGEST:
        why = f"{ascii(name)[:60]} is empty, too long, or has characters that cannot be seen"
        yield _error("E_NAME", pointer, why, f"use at most {_LONGEST} visible characters")


def _named_list(
    parts: Sequence[tuple[str, Plain]], key: str, what: str, reserved: frozenset[str], known: Sequence[str] = ()
) -> Iterator[Problem]:
    """Names that are none, that stand twice, or that a person takes for another."""
    names = _Names(what, known)
    for pointer, part in parts:
        name = part.get(key)
        if isinstance(name, str):
            yield from _name_problems(name, f"{pointer}/{key}", reserved)
            yield from names.told(name, f"{pointer}/{key}")


class _Names:
    """The names of one kind that came by; `known` are there before any."""

    def __init__(self, what: str, known: Sequence[str] = ()) -> None:
        self._what = what
        self._exact: set[str] = set()
        self._like = {_looks(name): name for name in known}

    def told(self, name: str, pointer: str) -> Iterator[Problem]:
        """What is wrong with the next name among those before it."""
        other = self._like.setdefault(_looks(name), name)
        if name and name in self._exact:
            yield _twice(pointer, self._what, name)
        elif other != name:
            why = f"{name!a} looks like {other!a}, and is another {self._what}"
            yield _warning("W_CONFUSABLE_NAME", pointer, why, "rename one of them")
        self._exact.add(name)


def _looks(name: str) -> str:
    """What a name looks like to a hasty reader."""
    plain = unicodedata.normalize("NFKD", name).translate(_LOOKALIKES)
    return "".join(character for character in plain.casefold() if character.isprintable() and character not in _ACCENTS)


def _variable_names(variables: Plain, given: str) -> Iterator[Problem]:
    names = _Names("value", (given,))
    for name, value in variables.items():
        pointer = f"/variables/{escape_key(name)}"
        yield from _name_problems(name, pointer)
        yield from names.told(name, pointer)
        if name == given:
            why = f"{name!r} is the input; a variable of that name would overwrite what the caller gives"
            yield _error("E_SHADOW_INPUT", pointer, why, "rename the variable")
        if name == "variables":
            yield _warning("W_SHADOW", pointer, "it hides common_data.variables", "rename it")
        if name == "max_iterations" and (type(value) is not int or value < 1):
            why = "it bounds the visits of every state and is not a whole number of at least 1"
            yield _error("E_TYPE", pointer, why, "write a whole number of at least 1")
        yield from _prototypes(value, pointer)


def _prototypes(value: Any, pointer: str) -> Iterator[Problem]:
    """Keys that would not stay data where scripts copy objects."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inside:
        place = f"{pointer}/{escape_key(str(key))}"
        if key == "__proto__":
            yield _error("E_NAME", place, "it would change the object that it stands in", "rename it")
        yield from _prototypes(item, place)


# the parts and how they hang together


def _parts(view: _View, _: Around) -> Iterator[Problem]:
    workflow = view.workflow
    if not _text(workflow, "description"):
        yield _warning("W_DESCRIPTION", "/description", "it does not say what it is for", "write a description")
    for key in ("input", "output"):
        if isinstance(part := workflow.get(key), dict) and not _text(part, "description"):
            yield _warning("W_DESCRIPTION", f"/{key}/description", f"the {key} is not described", "describe it")
    contexts = {_text(context, "name") for _, context in view.contexts}
    known = _first_of(contexts)
    for pointer, agent in view.agents:
        name = agent.get("context")
        if isinstance(name, str) and name not in contexts:
            yield _unknown("context", f"{pointer}/context", name, known)
    used = {_text(agent, "context") for _, agent in view.agents}
    asked = {_text(state, "agent") for _, state in view.states}
    yield from _unused_parts(view, view.contexts, "name", "context", used)
    yield from _unused_parts(view, view.agents, "agent_role", "agent", asked)
    yield from _output(view)


def _unknown(what: str, pointer: str, name: str, known: str) -> Problem:
    why = f"no {what} is called {ascii(name)[:60]}"
    return _error(f"E_UNKNOWN_{what.upper()}", pointer, why, f"there are: {known}")


def _first_of(names: Iterable[str]) -> str:
    return ", ".join(sorted(filter(None, names))[:12]) or "none"


def _unused_parts(
    view: _View, parts: Sequence[tuple[str, Plain]], key: str, what: str, used: set[str]
) -> Iterator[Problem]:
    for pointer, part in parts:
        name = _text(part, key)
        if name and name not in used and name not in view.words:
            yield _warning("W_UNUSED", pointer, f"the {what} {name!r} is never used", "remove it, or use it")


def _output(view: _View) -> Iterator[Problem]:
    """Whether anything can ever be the output."""
    output = view.workflow.get("output")
    name = _text(output, "name") if isinstance(output, dict) else ""
    ends = [_text(state, "input") for _, state in view.states if _text(state, "name") == STOP]
    if any(end and "common_data" not in end for end in ends):  # the end itself gives the output
        return
    variables = view.workflow.get("variables")
    given = {_text_of_input(view.workflow), *(variables if isinstance(variables, dict) else ())}
    answers = {
        _text(question, "answer") or "answer"
        for _, state in view.states
        if isinstance(question := state.get("ask"), dict)
    }
    if name and name not in given | answers and not any(may_set(script, name) for script in view.scripts()):
        how = f"set common_data.{name} in a script, or name what is set"
        yield _warning("W_OUTPUT_UNSET", "/output/name", f"no script sets common_data.{name}", how)


# where states lead


def _ways(view: _View, _: Around) -> Iterator[Problem]:
    if START not in {_text(state, "name") for _, state in view.top} and isinstance(view.workflow.get("states"), list):
        yield _error("E_NO_START", "/states", f"no state is called {START!r}", f"call the first one {START!r}")
    if view.is_whole:
        known = _first_of(view.by_name)
        for pointer, target in _targets(view):
            if target != STOP and target not in view.by_name:
                yield _unknown("state", pointer, target, known)
    for pointer, state in view.states:
        yield from _own_ways(view, pointer, state)
    if view.is_whole and START in view.by_name:
        yield from _far_ways(view)


def _targets(view: _View) -> Iterator[tuple[str, str]]:
    """Everything that names a state, with its pointer."""
    for pointer, around in (("", view.workflow), *view.states):
        for key in ("on_error", "on_limit"):
            if isinstance(target := around.get(key), str):
                yield f"{pointer}/{key}", target
        if around is not view.workflow:
            for place, transition in _objects(around, "transition", pointer):
                if isinstance(target := transition.get("target"), str):
                    yield f"{place}/target", target


def _own_ways(view: _View, pointer: str, state: Plain) -> Iterator[Problem]:
    """What the transitions of one state say among themselves."""
    name = _text(state, "name")
    if name == STOP or view.is_inside(pointer):
        return
    ways = list(_objects(state, "transition", pointer))
    if "transition" not in state:
        yield _error("E_REQUIRED", f"{pointer}/transition", "transition is missing", "say where it leads")
    stops = "stop" in (state.get("on_no_match"), view.workflow.get("on_no_match"))
    if not ways and not stops and isinstance(state.get("transition", []), list):
        yield _error("E_NO_EXIT", pointer, f"{name} leads nowhere", "add a transition")
        return
    open_, taken = [], ""
    for place, transition in ways:
        if taken:
            why = f"it is never tried: {taken} always holds"
            yield _warning("W_UNREACHABLE_TRANSITION", place, why, "put it above, or remove it")
        elif is_false(_text(transition, "condition")):
            yield _warning("W_NEVER_TAKEN", f"{place}/condition", "it never holds", "write a condition, or remove it")
        else:
            open_.append(_text(transition, "target"))
            taken = place if is_true(_text(transition, "condition")) else ""
    if name and open_ and set(open_) == {name} and (taken or not stops):
        yield _error("E_NO_EXIT", pointer, f"{name} leads to nothing but itself", "add a way out of it")
    elif not open_ and ways and not stops:
        yield _error("E_NO_EXIT", pointer, f"no transition of {name} is ever taken", "add a way out of it")


def _far_ways(view: _View) -> Iterator[Problem]:
    """States that a run never comes to, or from which it never comes to its end."""
    leads = {name: set(_leading(view, pointer, state)) for name, (pointer, state) in view.by_name.items()}
    reached = _closure({START}, leads)
    ending = _closure({STOP}, _reverse(leads))
    for name, (pointer, _) in view.by_name.items():
        if name not in reached and name != STOP:
            yield _warning("W_UNREACHABLE", pointer, f"no transition leads to {name}", "remove it, or lead there")
    stuck = reached - ending
    circle = _circling({name: targets for name, targets in leads.items() if name in stuck})
    names = [name for name in view.by_name if name in circle]
    if names and _looks(STOP) not in map(_looks, names):  # else that name is the mistake, and has been told
        why = f"from {', '.join(names[:5])} no way leads to {STOP}: only a limit ends the run"
        yield _error("E_NO_EXIT", view.by_name[names[0]][0], why, f"add a transition to {STOP}")


def _leading(view: _View, pointer: str, state: Plain) -> Iterator[str]:
    """Where a run may stand after a state: its targets, what is inside, and what is around it."""
    ways = list(_open_ways(state, pointer))
    yield from (_text(transition, "target") for transition in ways)
    yield from filter(None, (_text(part, key) for part in (state, view.workflow) for key in ("on_error", "on_limit")))
    may_match_none = not any(is_true(_text(transition, "condition")) for transition in ways)
    if may_match_none and "stop" in (state.get("on_no_match"), view.workflow.get("on_no_match")):
        yield STOP
    for key in ("states", "parallel"):
        yield from (_text(part, "name") for _, part in _objects(state, key, pointer))
    if view.is_inside(pointer):
        yield _text(view.at[pointer.rsplit("/", 2)[0]], "name")


def _open_ways(state: Plain, pointer: str) -> Iterator[Plain]:
    """The transitions that a run may take: none that never holds, and none behind one that always does."""
    for _, transition in _objects(state, "transition", pointer):
        if not is_false(_text(transition, "condition")):
            yield transition
        if is_true(_text(transition, "condition")):
            return


def _reverse(leads: Mapping[str, set[str]]) -> dict[str, set[str]]:
    back: dict[str, set[str]] = {}
    for name, targets in leads.items():
        for target in targets:
            back.setdefault(target, set()).add(name)
    return back


def _closure(names: set[str], leads: Mapping[str, set[str]]) -> set[str]:
    found, todo = set(names), list(names)
    while todo:
        for name in leads.get(todo.pop(), ()):
            if name not in found:
                found.add(name)
                todo.append(name)
    return found


def _circling(leads: Mapping[str, set[str]]) -> set[str]:
    """The names on circles of several, and between such circles."""
    others = {name: (targets & leads.keys()) - {name} for name, targets in leads.items()}
    going_on = _leading_on(others)
    back = _reverse({name: others[name] & going_on for name in going_on})
    return _leading_on({name: back.get(name, set()) for name in going_on})


def _leading_on(leads: Mapping[str, set[str]]) -> set[str]:
    """The names from which a way leads on for ever."""
    back, left = _reverse(leads), {name: len(targets) for name, targets in leads.items()}
    todo = [name for name, count in left.items() if not count]
    while todo:
        for name in back.get(todo.pop(), ()):
            left[name] -= 1
            if not left[name]:
                todo.append(name)
    return {name for name, count in left.items() if count}


# what states do


def _actions(view: _View, _: Around) -> Iterator[Problem]:
    agents = {_text(agent, "agent_role") for _, agent in view.agents}
    known = _first_of(agents)
    for pointer, state in view.states:
        name, agent = state.get("agent"), _text(state, "agent")
        if isinstance(name, str) and name not in agents:
            yield _unknown("agent", f"{pointer}/agent", name, known)
        if _text(state, "name") == STOP and not view.is_inside(pointer):
            yield from _without_effect(pointer, state, _NOT_OF_STOP, f"in {STOP}")
            continue
        yield from _doing(pointer, state, agent)


_NOT_OF_STOP = set(SCHEMA["$defs"]["State"]["properties"]) - {"name", "description", "input", "$comment"}


def _doing(pointer: str, state: Plain, agent: str) -> Iterator[Problem]:
    action = _action(state)
    function, sub = _text(action, "function"), "sub_workflow" in action
    does = [
        what for what, is_there in (("an agent", agent), ("a sub_workflow", sub), ("ask", "ask" in state)) if is_there
    ]
    if function and sub:
        why = "it names a function and a sub_workflow: which of them is to be done?"
        yield _error("E_AMBIGUOUS_ACTION", f"{pointer}/action", why, "keep one of them")
    elif len(does) > 1:
        place = f"{pointer}/action" if sub else f"{pointer}/ask"
        yield _error("E_AMBIGUOUS_ACTION", place, f"the state has {' and '.join(does)}", "make two states of it")
    if function and function != "script" and not agent and not sub:
        yield _error("E_REQUIRED", f"{pointer}/agent", f"no agent is named to {function}", "name an agent")
    if function == "script" and not _text(action, "script"):
        yield _error("E_REQUIRED", f"{pointer}/action/script", "there is no script to do", "write one")
    speaks = bool(agent) and function not in ("clearConversation", "script")
    if "input" in state and not speaks:
        yield from _without_effect(pointer, state, ("input",), "where no agent is told something")
    if speaks and not str(state.get("input", "")).strip():
        why = f"{agent} is told nothing new"
        yield _warning("W_NO_INPUT", f"{pointer}/input", why, "write an input, or leave it so")
    if not sub:
        yield from _without_effect(f"{pointer}/action", action, ("sub_workflow_input",), "without sub_workflow")
        yield from _without_effect(pointer, state, ("budget",), "without a sub_workflow")
    if not does:
        yield from _without_effect(pointer, state, ("timeout",), "where nothing is waited for")
    if not speaks:
        yield from _without_effect(pointer, state, ("retry",), "where no agent is asked")


def _without_effect(pointer: str, part: Plain, keys: Iterable[str], where: str) -> Iterator[Problem]:
    for key in sorted(keys):
        if key in part:
            yield _warning("W_NO_EFFECT", f"{pointer}/{key}", f"{key} has no effect {where}", "remove it")


def _questions(view: _View, _: Around) -> Iterator[Problem]:
    for pointer, state in view.states:
        ask = state.get("ask")
        if isinstance(ask, dict) and isinstance(ask.get("schema"), dict):
            for place, wanted in unreadable(ask["schema"], f"{pointer}/ask/schema"):
                yield _error("E_SCHEMA", place, "no answer can be compared with it", f"write {wanted}")
        if isinstance(ask, dict) and isinstance(ask.get("answer"), str):
            yield from _name_problems(ask["answer"], f"{pointer}/ask/answer")


def _nesting(view: _View, _: Around) -> Iterator[Problem]:
    """States inside states: who has them does nothing itself, and each group of them has an end."""
    for pointer, state in view.states:
        inside = [key for key in ("states", "parallel") if state.get(key)]
        if len(inside) == 2:
            why = "states and parallel stand side by side"
            yield _error("E_AMBIGUOUS_STATES", pointer, why, "put the states into one of the parallel ones")
        if inside and (doing := [key for key in ("agent", "action", "ask") if key in state]):
            why = f"a state with states inside does nothing itself, and this one has {', '.join(doing)}"
            yield _error("E_AMBIGUOUS_STATES", f"{pointer}/{doing[0]}", why, "move it into a state inside")
        if not inside:
            yield from _without_effect(pointer, state, ("history",), "without states inside")
        if not state.get("parallel"):
            yield from _without_effect(pointer, state, ("join",), "without parallel")
        for place, region in _objects(state, "parallel", pointer):
            if not region.get("states"):
                why = "a parallel state needs states of its own"
                yield _error("E_REQUIRED", f"{place}/states", why, "put its work into a state inside")
            yield from _without_effect(place, region, ("transition",), "in a parallel state")
        for place, inner in _objects(state, "states", pointer):
            if "transition" not in inner and any(key in inner for key in ("agent", "action", "ask", "states")):
                why = f"{_text(inner, 'name')} does something and leads nowhere"
                yield _error("E_NO_EXIT", place, why, "add a transition, for example to a state that has none: the end")


# roles


def _roles(view: _View, around: Around) -> Iterator[Problem]:
    if around.roles is None:
        return
    for pointer, agent in view.agents:
        name = _text(agent, "agent_role")
        if name and name not in around.roles:
            why = f"no role is called {name!r}: the agent has no system message and no tools of its own"
            yield _warning("W_UNKNOWN_ROLE", f"{pointer}/agent_role", why, "add it to the file of roles")
    offered = {tool for role in around.roles.values() for tool in parsing_tools(role)}
    for pointer, state in view.states:
        role = around.roles.get(_text(state, "agent")) if _action(state).get("function") in _SPEAKING else None
        own = offered if role is None else set(parsing_tools(role))
        for place, transition in _objects(state, "transition", pointer):
            for key in ("condition", "before"):
                for tool in sorted(called_functions(_text(transition, key))):
                    if tool not in offered:
                        why = f"no role has a parsing tool {tool!r}"
                        yield _warning("W_UNKNOWN_TOOL", f"{place}/{key}", why, _meant_tool(tool, offered))
                    elif tool not in own and own is not offered:
                        why = f"the role {_text(state, 'agent')!r} has no parsing tool {tool!r}; another role has"
                        yield _warning("W_UNKNOWN_TOOL", f"{place}/{key}", why, _meant_tool(tool, own))


_SPEAKING = (None, "sendUserMessage")


def _meant_tool(tool: str, offered: Iterable[str]) -> str:
    close = get_close_matches(tool[:64], sorted(offered), 1)
    return f"did you mean {close[0]!r}?" if close else "add it to the role's parsingTools"


def parsing_tools(role: Plain) -> list[str]:
    """The names of the parsing tools of a role."""
    return [function["name"] for function in _functions_of(role)]


def _functions_of(role: Plain) -> list[Plain]:
    """The parsing tools of a role that have a name; some write the function itself."""
    tools = role.get("parsingTools")
    functions = [
        tool.get("function", tool) for tool in (tools if isinstance(tools, list) else ()) if isinstance(tool, dict)
    ]
    return [function for function in functions if isinstance(function, dict) and isinstance(function.get("name"), str)]


# scripts


def sources(view: _View) -> Iterator[Source]:
    """Every script of a workflow."""
    for pointer, state in view.states:
        for key in ("on_entry", "on_exit"):
            if isinstance(text := state.get(key), str):
                yield Source("script", text, f"{pointer}/{key}")
        action = _action(state)
        if isinstance(text := action.get("script"), str):
            yield Source("script", text, f"{pointer}/action/script")
        if isinstance(text := state.get("input"), str):
            yield Source("input", text, f"{pointer}/input")
        given = action.get("sub_workflow_input")
        for key, value in (given if isinstance(given, dict) else {}).items():
            if isinstance(value, str):
                yield Source("input", value, f"{pointer}/action/sub_workflow_input/{escape_key(key)}")
        ask = state.get("ask")
        if isinstance(ask, dict) and isinstance(text := ask.get("question"), str):
            yield Source("input", text, f"{pointer}/ask/question")
        for place, transition in _objects(state, "transition", pointer):
            if isinstance(text := transition.get("condition"), str):
                yield Source("condition", text, f"{place}/condition")
            if isinstance(text := transition.get("before"), str):
                yield Source("script", text, f"{place}/before")


def _functions(view: _View, around: Around) -> Iterator[Problem]:
    """Functions of Python that a workflow names and its user's module does not have."""
    if around.functions is None:
        return
    for pointer, name in _python_names(view):
        if name not in around.functions:
            why = f"the module of functions has no {name!r}"
            yield _error("E_UNKNOWN_FUNCTION", pointer, why, _guess(name, around.functions))


def python_names(workflow: Plain) -> set[str]:
    """The functions of Python that a workflow names."""
    return {name for _, name in _python_names(_View(workflow))}


def _python_names(view: _View) -> Iterator[tuple[str, str]]:
    named = (source for source in sources(view) if source.text.startswith(PYTHON))
    return ((source.pointer, source.text.removeprefix(PYTHON).strip()) for source in named)


def _guess(name: str, known: Iterable[str]) -> str:
    """What a name may have meant, as a remedy."""
    names = sorted(set(known))
    begun = [other for other in names if len(name) > 2 and other.startswith(name)]
    close = get_close_matches(name[:64], names, 1) or begun[:1]
    return f"did you mean {close[0]!r}?" if close else f"there are: {_first_of(names)}"


def _scripts(view: _View, around: Around) -> Iterator[Problem]:
    written = [source for source in sources(view) if not source.text.startswith(PYTHON)]
    asked = [source for source in written if len(source.text) <= LONGEST and source.text.strip() not in ("", "true")]
    for source in written:
        if len(source.text) > LONGEST:
            yield _error("E_LIMIT_SCRIPT", source.pointer, f"it is longer than {LONGEST} characters", "make it shorter")
        elif not source.text.strip() and source.kind != "input":
            what = "a condition" if source.kind == "condition" else "a script"
            yield _error("E_EXPR_SYNTAX", source.pointer, f"it is empty and not {what}", "write one, or remove the key")
        elif source.kind == "condition" and assigns(source.text):
            yield _error("E_EXPR_ASSIGN", source.pointer, "it assigns and does not compare", "write === to compare")
    if around.faults is None:
        if asked:
            why = "no JavaScript engine is installed: scripts were not looked at"
            yield _warning("W_UNCHECKED", "/states", why, "install the package quickjs-ng")
        return
    faults = around.faults(asked)
    for source, fault in zip(asked, faults, strict=True):
        if fault and source.kind == "input":
            why = f"it is not an expression ({fault}) and stands for itself, as a text"
            yield _warning("W_INPUT_TEXT", source.pointer, why, "put a text into quotes inside: \"'…'\"")
        elif source.kind == "input" and assigns(source.text):
            why = "it assigns, and only scripts may"
            yield _error("E_EXPR_ASSIGN", source.pointer, why, "assign in a script, or put a text into quotes: \"'…'\"")
        elif fault:
            yield _error("E_EXPR_SYNTAX", source.pointer, f"it is not JavaScript: {fault}", "correct it")
    sound = [source for source, fault in zip(asked, faults, strict=True) if not fault]
    for rule in (_free_names, _parts_named, _fields_read, _unset_keys):
        yield from rule(view, around, sound)


# the names in scripts


def _free_names(view: _View, _: Around, sound: Sequence[Source]) -> Iterator[Problem]:
    """Names that nobody declares: the script would fail."""
    for source in sound:
        for name in undeclared_names(source.text):
            close = get_close_matches(name[:64], sorted(SURFACE | GLOBALS), 1)
            quotes = "; put a text into quotes inside: \"'…'\"" if source.kind == "input" else ""
            remedy = f"did you mean {close[0]!r}?" if close else f"declare it, or write common_data.{name}{quotes}"
            yield _error("E_UNKNOWN_NAME", source.pointer, f"nothing is called {name!r} in a script", remedy)


def _parts_named(view: _View, _: Around, sound: Sequence[Source]) -> Iterator[Problem]:
    """Agents and contexts that a script names and the workflow does not have, and what these have not."""
    known = {
        "agent": {_text(agent, "agent_role") for _, agent in view.agents},
        "context": {_text(context, "name") for _, context in view.contexts},
    }
    for source in sound:
        for what, name in parts_named(source.text):
            if name not in known[what] | _INHERITED | _CONTAINER:
                why = f"no {what} is called {ascii(name)[:60]}"
                yield _error(f"E_UNKNOWN_{what.upper()}", source.pointer, why, _guess(name, known[what] - {""}))
        for what, name, member in members_read(source.text):
            if member not in MEMBERS[what] | _INHERITED and name not in _INHERITED | _CONTAINER:
                why = f"no {what} has {ascii(member)[:60]}"
                yield _error("E_UNKNOWN_FIELD", source.pointer, why, _guess(member, MEMBERS[what]))


def _fields_read(view: _View, around: Around, sound: Sequence[Source]) -> Iterator[Problem]:
    """Fields that a script reads of a decision and its parsing tool does not have."""
    for source in sound:
        for tool, part in parts_read(source.text):
            if part not in _DECISION | _INHERITED:
                why = f"function.{tool} has no {part!r}, only {' and '.join(map(repr, sorted(_DECISION)))}"
                yield _error("E_UNKNOWN_FIELD", source.pointer, why, f"write function.{tool}.arguments.FIELD")
        for tool, field in fields_read(source.text):
            fields = _fields_of(tool, _role_at(view, source.pointer, around), around)
            if fields is not None and field not in fields:
                why = f"the parsing tool {tool!r} has no {field!r}"
                yield _error("E_UNKNOWN_FIELD", source.pointer, why, _guess(field, fields))


def _role_at(view: _View, pointer: str, around: Around) -> Plain:
    """The role of the agent that speaks in the state to which a pointer leads."""
    while pointer and pointer not in view.at:
        pointer = pointer.rpartition("/")[0]
    return (around.roles or {}).get(_text(view.at.get(pointer, {}), "agent"), {})


def _fields_of(tool: str, role: Plain, around: Around) -> frozenset[str] | None:
    """The fields of a parsing tool, of this role or of any; None where it may have others."""
    every = (role,) if tool in parsing_tools(role) else (around.roles or {}).values()
    found: set[str] = set()
    shapes = [function for other in every for function in _functions_of(other) if function["name"] == tool]
    for function in shapes:
        parameters = function.get("parameters")
        if not isinstance(parameters, dict) or parameters.get("additionalProperties"):
            return None
        properties = parameters.get("properties")
        if not isinstance(properties, dict) or not properties:
            return None
        found |= set(properties)
    return frozenset(found) if shapes else None


def _unset_keys(view: _View, _: Around, sound: Sequence[Source]) -> Iterator[Problem]:
    """Keys of common_data that are read and that nothing sets."""
    scripts = [text for text in view.scripts() if text]
    if any(text.startswith(PYTHON) or len(text) > LONGEST for text in scripts):
        return
    changed = [keys_set(text) for text in scripts]
    if None in changed:
        return
    variables = view.workflow.get("variables")
    known = {
        _text_of_input(view.workflow),
        "error",
        "limit",
        *(variables if isinstance(variables, dict) else ()),
    } | _INHERITED
    known |= {
        _text(question, "answer") or "answer"
        for _, state in view.states
        if isinstance(question := state.get("ask"), dict)
    }
    known = known.union(*(keys for keys in changed if keys is not None))
    for source in sound:
        for name in keys_read(source.text):
            if name not in known:
                why = f"common_data.{name} is read here, and nothing sets it"
                yield _warning("W_UNSET", source.pointer, why, _guess(name, known - _INHERITED - {""}))


# sub-workflows

_ELSEWHERE = "also those of the files beside this one, and what `moot workflows` lists"


def _sub_workflows(view: _View, beside: Mapping[str, Any], around: Around) -> Iterator[Problem]:
    pattern, known = "use letters, digits, '_' and '-'; a workflow is found by its name", ""
    for pointer, state in view.states:
        name = _action(state).get("sub_workflow")
        place = f"{pointer}/action/sub_workflow"
        if not isinstance(name, str):
            continue
        if any(problem.code == "E_NAME" for problem in misfits({"workflow_name": name})):
            yield _error("E_NAME", place, f"{ascii(name)[:60]} is not a name of a workflow", pattern)
        elif (child := _find_workflow(name, beside, around)) is not None:
            yield from _input_problems(f"{place}_input", _action(state).get("sub_workflow_input"), child)
        elif not around.has(name):
            known = known or f"{_first_of(beside)}; {_ELSEWHERE}"
            yield _unknown("workflow", place, name, known)
    if circle := _circle(_name_of(view.workflow), view.workflow, beside, around):
        why = f"{' → '.join(circle)}: a workflow would have to end before it can begin"
        yield _error("E_SUB_CYCLE", "", why, "take one of them out of the circle")


def _find_workflow(name: str, beside: Mapping[str, Any], around: Around) -> Plain | None:
    found = beside.get(name) or around.find(name)
    return found if isinstance(found, dict) else None


def _input_problems(pointer: str, given: Any, child: Plain) -> Iterator[Problem]:
    name, mapping = _text_of_input(child), given if isinstance(given, dict) else {}
    if name and name not in mapping:
        why = f"{_name_of(child)} takes {name!r}, and it is not given"
        yield _error("E_SUB_INPUT", pointer, why, f'write "sub_workflow_input": {{"{name}": "common_data.…"}}')
    for key in mapping:
        if name and key != name:
            why = f"{_name_of(child)} takes {name!r} and nothing else"
            yield _warning("W_NO_EFFECT", f"{pointer}/{escape_key(key)}", why, "remove it")


def _circle(name: str, workflow: Plain, beside: Mapping[str, Any], around: Around) -> list[str]:
    """The way from a workflow back to itself; empty where there is none."""
    todo, seen = [([name], workflow)], set[str]()
    while todo:
        way, current = todo.pop()
        for sub in sorted(_subs(current)):
            if sub == name:
                return [*way, sub]
            if sub not in seen and (below := _find_workflow(sub, beside, around)) is not None:
                seen.add(sub)
                todo.append(([*way, sub], below))
    return []


def _subs(workflow: Plain) -> set[str]:
    return {sub for _, state in _View(workflow).states if (sub := _text(_action(state), "sub_workflow"))}
