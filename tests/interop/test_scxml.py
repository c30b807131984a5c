"""SCXML in and out: what a document becomes, what is refused and where, and that a round trip changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from moothall.errors import DefinitionError
from moothall.interop.scxml import Document, read, write
from moothall.interop.scxml_content import Aside, Message, literal, seconds
from moothall.interop.scxml_session import Session, session
from moothall.kernel.effects import Alarm
from moothall.kernel.events import Done, Event, Named
from moothall.kernel.machine import Machine
from moothall.kernel.nodes import Final, History, On, Parallel, State, always, anywhere, otherwise
from moothall.kernel.simulate import Evaluate, Simulation
from moothall.kernel.step import Absent, Answer, Append, Failed, Value

NAMESPACE = "http://www.w3.org/2005/07/scxml"


def document(inside: str, attributes: str = "") -> Document:
    return read(f'<scxml xmlns="{NAMESPACE}" version="1.0" {attributes}>{inside}</scxml>', file="d.scxml")


def run(inside: str, attributes: str = "", evaluate: Evaluate | None = None) -> Session:
    return session(document(inside, attributes), evaluate=evaluate)


def told(inside: str, *events: str) -> list[tuple[str, ...]]:
    """The active states at the start and after each event."""
    running = run(inside)
    seen = [running.active]
    for event in events:
        running.send(Named(event))
        seen.append(running.active)
    return seen


def refusal(text: str) -> str:
    with pytest.raises(DefinitionError) as caught:
        read(text, file="d.scxml")
    return str(caught.value)


# reading


def test_a_document_becomes_an_ordinary_machine() -> None:
    machine = document('<state id="a"><transition event="go" target="b"/></state><final id="b"/>', 'name="m"').machine
    assert isinstance(machine, Machine)
    assert (machine.name, machine.errors, machine.data) == ("m", "scxml", dict)
    simulation = Simulation(machine, {})
    simulation.send(Named("go"))
    assert (simulation.active, simulation.snapshot.status) == (("b",), "done")


def test_a_document_without_a_name_is_called_like_its_file() -> None:
    assert document('<state id="a"/>').machine.name == "d.scxml"


def test_states_without_an_id_get_one_that_nobody_has() -> None:
    assert told('<state><transition event="e" target="state1"/></state><state id="state1"/>', "e") == [
        ("state2",),
        ("state1",),
    ]


def test_the_initial_attribute_may_reach_deep_into_parallel_states() -> None:
    regions = "".join(f'<state id="{r}"><state id="{r}1"/><state id="{r}2"/></state>' for r in "ab")
    assert run(f'<parallel id="p">{regions}</parallel>', 'initial="a2 b2"').active == ("a2", "b2")


def test_an_initial_element_runs_its_content_after_the_state_was_entered() -> None:
    inside = """
    <state id="s">
      <onentry><raise event="first"/></onentry>
      <initial><transition target="b"><raise event="second"/></transition></initial>
      <state id="a"/>
      <state id="b"><transition event="first" target="c"/></state>
      <state id="c"><transition event="second" target="d"/></state>
      <state id="d"/>
    </state>"""
    assert run(inside).active == ("d",)


HISTORY = """
<state id="s">
  <history id="h" type="{type}"><transition target="b"><raise event="fresh"/></transition></history>
  <state id="a"><state id="a1"><transition event="on" target="a2"/></state><state id="a2"/></state>
  <state id="b"/>
  <transition event="out" target="o"/>
</state>
<state id="o"><transition event="back" target="h"/><transition event="in" target="s"/></state>"""


def test_shallow_history_remembers_the_inner_state_and_deep_history_all_of_it() -> None:
    for kind, remembered in (("shallow", "a1"), ("deep", "a2")):
        assert told(HISTORY.format(type=kind), "on", "out", "back")[-1] == (remembered,)


def test_history_without_memory_goes_to_its_default_and_runs_its_content() -> None:
    inside = HISTORY.format(type="deep").replace(
        '<state id="b"/>', '<state id="b"><transition event="fresh" target="a"/></state>'
    )
    running = run(inside, 'initial="o"')
    running.send(Named("back"))
    assert running.active == ("a1",)
    assert [microstep.event for microstep in running.steps[-1].microsteps] == ["back", "fresh"]


def test_history_does_not_enter_again_what_was_never_left() -> None:
    inside = """
    <state id="s">
      <history id="h" type="deep"><transition target="b"/></history>
      <state id="m"><onentry><raise event="entered"/></onentry>
        <transition event="e" target="h" type="internal"/><transition event="entered" cond="In('b')" target="wrong"/>
        <state id="a"/><state id="b"/></state>
    </state>
    <state id="wrong"/>"""
    assert told(inside, "e") == [("a",), ("b",)]


def test_a_state_is_active_until_its_last_exit_action_is_done_also_at_the_end() -> None:
    inside = """
    <final id="f"><onexit><if cond="In('f')"><log label="still here"/></if></onexit></final>"""
    assert run(inside).steps[0].appends == (Append("log", {"label": "still here"}),)


def test_an_internal_transition_does_not_leave_its_state() -> None:
    inside = """
    <state id="s">
      <onexit><raise event="left"/></onexit>
      <transition event="in" target="b" type="internal"/>
      <transition event="ex" target="b"/>
      <transition event="left" target="o"/>
      <state id="a"/><state id="b"/>
    </state>
    <state id="o"/>"""
    assert told(inside, "in", "ex")[1:] == [("b",), ("o",)]


def test_final_states_tell_that_the_states_around_them_are_done() -> None:
    region = (
        '<state id="{0}"><state id="{0}1"><transition event="{0}" target="{0}2"/></state><final id="{0}2"/></state>'
    )
    inside = f'<parallel id="p"><transition event="done.state.p" target="o"/>{region.format("x")}{region.format("y")}'
    assert told(f'{inside}</parallel><state id="o"/>', "x", "y") == [("x1", "y1"), ("x2", "y1"), ("o",)]


@pytest.mark.parametrize(
    ("descriptor", "taken", "passed"),
    [
        ("error", ("error", "error.send", "error.send.failed"), ("errors", "my.error")),
        ("error.*", ("error", "error.send"), ("errors",)),
        ("error.", ("error", "error.send"), ("errors",)),
        ("*", ("error", "x.y.z"), ()),
        ("a  b.c", ("a", "a.x", "b.c", "b.c.d"), ("b", "c")),
    ],
)
def test_events_match_by_whole_words_of_their_names(descriptor: str, taken: list[str], passed: list[str]) -> None:
    inside = f'<state id="s"><transition event="{descriptor}" target="t"/></state><state id="t"/>'
    assert all(told(inside, event)[-1] == ("t",) for event in taken)
    assert all(told(inside, event)[-1] == ("s",) for event in passed)


def test_a_transition_of_the_document_itself_counts_everywhere() -> None:
    inside = (
        '<transition event="home" target="a"/><state id="a"><transition event="go" target="b"/></state><state id="b"/>'
    )
    assert told(inside, "go", "home") == [("a",), ("b",), ("a",)]


# conditions and expressions


@pytest.mark.parametrize(
    ("condition", "holds"),
    [("true", True), ("false", False), ("In('a')", True), ('In("b")', False), (" In( 'a' ) ", True)],
)
def test_literal_conditions_need_no_engine(condition: str, holds: bool) -> None:
    condition = condition.replace('"', "&quot;")
    inside = f'<state id="a"><transition event="e" cond="{condition}" target="b"/></state><state id="b"/>'
    assert told(inside, "e")[-1] == (("b",) if holds else ("a",))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        (" -2.5 ", -2.5),
        ("'it'", "it"),
        ('"it\\n"', "it\n"),
        ("null", None),
        ('[1, {"a": true}]', [1, {"a": True}]),
    ],
)
def test_literals_are_values_without_an_engine(text: str, value: Any) -> None:
    assert literal(text) == Value(value)


@pytest.mark.parametrize("text", ["x", "1 + 1", "'a' + 'b'", "'a\\n'", "NaN", "{a: 1}", "", "In('a')", "1;"])
def test_whatever_is_no_literal_beyond_doubt_is_left_to_the_engine(text: str) -> None:
    assert literal(text) is None


COUNTING = """
<datamodel><data id="x" expr="1"/><data id="y"/></datamodel>
<state id="a">
  <onentry><assign location="x" expr="x + y"/></onentry>
  <transition event="e" cond="x &gt; 2" target="b"/>
</state>
<state id="b"/>"""


def test_an_expression_is_asked_for_with_its_variables_in_scope() -> None:
    asked: list[tuple[str, dict[str, Any]]] = []

    def evaluate(script: Any, scope: Any) -> Answer:
        asked.append((script, scope))
        return Value(7) if len(asked) == 1 else Value(True)

    running = run(COUNTING, 'name="m"', evaluate)
    assert running.send(Message("e", {"k": 1})).snapshot.active == ("b",)
    [(first, before), (second, after)] = asked
    assert first == "var y;\n(x + y\n)"
    assert (before["x"], before["_name"], "_event" in before) == (1, "m", False)
    assert second.splitlines()[-2:] == ["!!(x > 2", ")"]
    assert (after["x"], after["_event"]) == (7, {"name": "e", "data": {"k": 1}, "type": "external"})
    assert after["_x"]["active"] == ["a"]


def test_without_an_engine_a_document_with_expressions_says_what_it_needs() -> None:
    with pytest.raises(DefinitionError, match=r"this document needs a script engine for .*x \+ y"):
        run(COUNTING)


def test_a_log_never_needs_an_engine() -> None:
    running = run('<state id="a"><onentry><log label="l" expr="1 + 1"/><log expr="\'k\'"/></onentry></state>')
    assert running.steps[0].appends == (Append("log", {"label": "l"}), Append("log", {"label": "", "value": "k"}))


def test_a_log_is_evaluated_where_there_is_an_engine() -> None:
    def evaluate(script: Any, scope: Any) -> Answer:
        assert isinstance(script, Aside)
        return Value(2)

    running = run('<state id="a"><onentry><log label="l" expr="1 + 1"/></onentry></state>', evaluate=evaluate)
    assert running.steps[0].appends == (Append("log", {"label": "l", "value": 2}),)


def test_a_condition_that_goes_wrong_is_false_and_an_error() -> None:
    inside = """
    <state id="a"><transition event="e" cond="x.y" target="b"/><transition event="error.execution" target="c"/></state>
    <state id="b"/><state id="c"/>"""
    running = run(inside, evaluate=lambda script, scope: Failed("x is not defined"))
    running.send(Named("e"))
    assert running.active == ("c",)


def test_an_element_that_goes_wrong_ends_its_block_and_no_other() -> None:
    inside = """
    <state id="a">
      <onentry><raise event="one"/><assign location="unknown" expr="1"/><raise event="never"/></onentry>
      <onentry><raise event="two"/></onentry>
      <transition event="*"/>
    </state>"""
    events = [microstep.event for microstep in run(inside).steps[0].microsteps]
    assert events == ["", "one", "error.execution", "two"]


def test_an_error_says_which_element_went_wrong_and_where() -> None:
    inside = """
    <state id="a"><onentry>
      <assign location="_event" expr="1"/></onentry><transition event="error" target="b"/></state>"""
    seen: list[Any] = []

    def evaluate(script: Any, scope: Any) -> Answer:
        seen.append(scope["_event"])
        return Absent()

    run(f'{inside}<state id="b"><onentry><log expr="_event"/></onentry></state>', evaluate=evaluate)
    about = seen[0]["data"]
    assert (about["tagname"], about["line"]) == ("assign", 3)
    assert about["reason"] == "_event belongs to the platform and cannot be assigned"


# content


def test_branches_are_tried_in_their_order() -> None:
    inside = """
    <state id="a"><onentry>
      <if cond="false"><raise event="x"/>
      <elseif cond="In('a')"/><raise event="y"/>
      <else/><raise event="z"/></if></onentry>
      <transition event="x" target="x"/><transition event="y" target="y"/><transition event="z" target="z"/></state>
    <state id="x"/><state id="y"/><state id="z"/>"""
    assert run(inside).active == ("y",)


def test_a_loop_runs_its_content_for_every_item() -> None:
    inside = """
    <datamodel><data id="list">[10, 20]</data><data id="last"/></datamodel>
    <state id="a"><onentry>
      <foreach array="[10, 20]" item="it" index="at"><raise event="again"/></foreach></onentry>
      <transition event="again"/></state>"""
    running = run(inside)
    assert len(running.steps[0].taken) == 2
    data = running.snapshot.data
    assert (data["list"], data["it"], data["at"], "last" in data) == ([10, 20], 20, 1, False)


def test_sends_arrive_after_their_delay_and_can_be_cancelled() -> None:
    inside = """
    <state id="a"><onentry>
      <send event="b" delay="1.5s" id="x"/><send event="c" delayexpr="'20ms'"/><send event="d" delay=".5s"/>
      <cancel sendid="x"/></onentry><transition event="*"/></state>"""
    running = run(inside)
    running.settle()
    assert [step.event.name for step in running.steps[1:]] == ["c", "d"]
    assert running.now == 0.5


@pytest.mark.parametrize(("text", "time"), [("10ms", 0.01), ("1s", 1), (".5s", 0.5), (" 2.25S ", 2.25), ("0", 0)])
def test_delays_are_read_as_css_writes_times(text: str, time: float) -> None:
    assert seconds(text) == time


def test_a_raised_event_comes_before_a_sent_one() -> None:
    inside = """
    <state id="a"><onentry><send event="late"/><raise event="soon"/><send event="now" target="#_internal"/></onentry>
    <transition event="*"/></state>"""
    running = run(inside)
    assert [microstep.event for step in running.steps for microstep in step.microsteps] == ["", "soon", "now", "late"]


@pytest.mark.parametrize(
    ("send", "error"),
    [
        ('target="nowhere"', "error.execution"),
        ('target="#_scxml_stranger"', "error.communication"),
        ('target="#_parent"', "error.communication"),
        ('type="pigeon"', "error.execution"),
        ('namelist="unknown"', "error.execution"),
        ("delayexpr=\"'soon'\"", "error.execution"),
    ],
)
def test_a_message_that_cannot_be_sent_is_an_error(send: str, error: str) -> None:
    inside = f"""
    <state id="a"><onentry><send event="e" id="i" {send}/><raise event="never"/></onentry>
    <transition event="{error}" target="b"/><transition event="*" target="c"/></state><state id="b"/><state id="c"/>"""
    assert run(inside).active == ("b",)


def test_data_travel_with_done_events_and_with_the_end() -> None:
    inside = """
    <final id="f"><donedata><param name="a" expr="1"/><param name="b" expr="'x'"/></donedata></final>"""
    running = run(inside)
    assert (running.snapshot.status, running.snapshot.output) == ("done", {"a": 1, "b": "x"})


def test_whoever_starts_a_document_may_give_its_outer_variables_and_no_others() -> None:
    inside = """
    <datamodel><data id="x" expr="1"/></datamodel>
    <state id="a"><datamodel><data id="y" expr="2"/></datamodel></state>"""
    running = Session(document(inside).machine, {"x": 5, "y": 6, "z": 7})
    assert {name: value for name, value in running.snapshot.data.items() if name[0] != "_"} == {"x": 5, "y": 2}


def test_late_data_get_their_values_when_their_state_is_first_entered() -> None:
    inside = """
    <state id="a"><transition event="e" target="b"/></state>
    <state id="b"><datamodel><data id="x" expr="1"/></datamodel>
      <onentry><if cond="false"/></onentry><transition event="e" target="b"><assign location="x" expr="2"/></transition>
    </state>"""
    running = run(inside, 'binding="late"')
    assert "x" not in running.snapshot.data
    running.send(Named("e"))
    assert running.snapshot.data["x"] == 1
    running.send(Named("e"))
    assert running.snapshot.data["x"] == 2
    assert run(inside).snapshot.data["x"] == 1


@pytest.mark.parametrize(
    ("inside", "value"),
    [("[1,\n 2]", [1, 2]), (' {"a": 1} ', {"a": 1}), (" two \n words ", "two words"), ("'quoted'", "'quoted'")],
)
def test_text_inside_data_is_json_or_words(inside: str, value: Any) -> None:
    running = run(f'<datamodel><data id="x">{inside}</data></datamodel><state id="a"/>')
    assert running.snapshot.data["x"] == value


def test_a_document_inside_data_is_kept_as_markup_and_other_markup_as_text() -> None:
    inside = '<datamodel><data id="x">{}<b xmlns="urn:b" c="1">&lt;</b></data></datamodel><state id="a"/>'
    element = '<b xmlns="urn:b" c="1">&lt;</b>'
    assert run(inside.format("")).snapshot.data["x"] == {"#markup": element}
    assert run(inside.format("and ")).snapshot.data["x"] == f"and {element}"


def test_what_a_document_names_is_fetched_when_it_is_read() -> None:
    files = {"file:v.json": "[1, 2]", "s.js": "y = 1"}
    text = f"""<scxml xmlns="{NAMESPACE}" version="1.0"><datamodel><data id="x" src="file:v.json"/></datamodel>
    <script src="s.js"/><state id="a"/></scxml>"""
    found = read(text, fetch=files.__getitem__)
    running = session(found, evaluate=lambda script, scope: Value({"x": scope["x"], "y": 1}))
    assert (running.snapshot.data["x"], running.snapshot.data["y"]) == ([1, 2], 1)
    assert "nothing here can fetch 's.js'" in refusal(text)


# sessions


def invoking(child: str, invoke: str = "", rows: str = "", finalize: str = "") -> str:
    return f"""
    <state id="s">
      <invoke id="kid" {invoke}><content><scxml version="1.0" name="kid">{child}</scxml></content>{finalize}</invoke>
      {rows}
      <transition event="done.invoke.kid" target="over"/>
      <transition event="leave" target="over"/>
    </state>
    <state id="over"><transition event="*" target="late"/></state><state id="late"/>"""


def test_an_invoked_session_reports_its_end() -> None:
    assert run(invoking('<final id="f"/>')).active == ("over",)


def test_a_parent_and_its_child_can_talk() -> None:
    child = """
    <state id="c"><onentry><send event="hello" target="#_parent"/></onentry>
      <transition event="reply" target="f"/></state><final id="f"/>"""
    rows = '<transition event="hello"><send event="reply" target="#_kid"/></transition>'
    assert run(invoking(child, rows=rows)).active == ("over",)


def test_a_child_that_was_left_is_heard_no_more() -> None:
    child = """
    <state id="c"><onentry><send event="later" target="#_parent" delay="1s"/></onentry>
      <onexit><send event="bye" target="#_parent"/></onexit><transition event="*" target="c"/></state>"""
    running = run(invoking(child))
    kid = running.children["kid"]
    running.send(Named("leave"))
    running.settle()
    assert running.active == ("over",)
    assert kid.snapshot.status == "cancelled"


def test_a_wildcard_does_not_keep_a_run_from_being_cancelled() -> None:
    running = run(invoking('<state id="c"><transition event="*" target="c"/></state>'))
    kid = running.children["kid"]
    kid.send(Named("anything"))
    assert len(kid.steps[-1].taken) == 1
    running.send(Named("leave"))
    assert kid.snapshot.status == "cancelled"


def test_a_child_may_hear_all_that_its_parent_hears() -> None:
    child = '<state id="c"><transition event="news" target="f"/></state><final id="f"/>'
    running = run(invoking(child, invoke='autoforward="true"'))
    running.send(Named("news"))
    assert running.active == ("over",)


def test_finalize_runs_before_the_event_is_offered() -> None:
    child = """
    <final id="f"><onentry><send event="result" target="#_parent"><param name="x" expr="2"/></send></onentry></final>"""
    rows = '<transition event="result" cond="true" target="got"/><transition event="*" target="late"/>'
    finalize = '<finalize><assign location="x" expr="3"/></finalize>'
    inside = f'<datamodel><data id="x" expr="1"/></datamodel><state id="got"/>{invoking(child, "", rows, finalize)}'
    running = run(inside, 'initial="s"')
    assert (running.active, running.snapshot.data["x"]) == (("got",), 3)


def test_an_empty_finalize_takes_over_the_parameters() -> None:
    child = """
    <final id="f"><onentry><send event="result" target="#_parent"><param name="x" expr="2"/></send></onentry></final>"""
    inside = f'<datamodel><data id="x" expr="1"/></datamodel>{invoking(child, "namelist=" + chr(34) + "x" + chr(34))}'
    assert run(inside).snapshot.data["x"] == 1
    inside = inside.replace("</content>", "</content><finalize/>")
    assert run(inside).snapshot.data["x"] == 2


def test_what_goes_wrong_in_finalize_is_heard_after_the_event() -> None:
    child = '<state id="c"><onentry><send event="news" target="#_parent"/></onentry></state>'
    rows = '<transition event="*"/>'
    finalize = '<finalize><assign location="unknown" expr="1"/></finalize>'
    [_, told] = run(invoking(child, rows=rows, finalize=finalize)).steps
    assert [microstep.event for microstep in told.microsteps][1:] == ["news", "error.execution"]


def test_the_rows_of_a_finalized_event_come_before_rows_without_an_event() -> None:
    child = '<state id="c"><onentry><send event="news" target="#_parent"/></onentry></state>'
    rows = '<transition cond="x == 2" target="late"/><transition event="news" target="over"/>'
    finalize = '<finalize><assign location="x" expr="2"/></finalize>'
    inside = f'<datamodel><data id="x" expr="1"/></datamodel>{invoking(child, rows=rows, finalize=finalize)}'
    running = run(inside, evaluate=lambda script, scope: Value(scope["x"] == 2))
    assert (running.active, running.snapshot.data["x"]) == (("over",), 2)


RESTING = """
<datamodel><data id="x" expr="1"/><data id="w"/></datamodel>
<state id="s">
  <invoke idlocation="w" namelist="x"><content><scxml version="1.0">
    <datamodel><data id="x"/></datamodel><state id="c"/></scxml></content></invoke>
  <state id="a"><transition target="b"/></state>
  <state id="b"><onentry><if cond="In('s')">{early}<raise event="r"/></if></onentry>
    <transition event="r"><assign location="x" expr="2"/></transition></state>
  <transition event="error.communication" target="alone"/>
</state>
<state id="alone"/>"""


def test_a_session_is_invoked_when_nothing_else_is_left_to_do() -> None:
    running = run(RESTING.format(early=""))
    [kid] = running.children.values()
    assert kid.snapshot.data["x"] == 2
    assert running.snapshot.data["w"] == kid.id


def test_nobody_hears_a_message_that_is_sent_before_its_receiver_is_invoked() -> None:
    early = '<send event="e" target="#_s.1"/>'
    assert run(RESTING.format(early=early)).active == ("alone",)


def test_an_invocation_of_a_state_that_was_left_at_once_is_not_even_looked_at() -> None:
    inside = """
    <state id="a"><invoke type="pigeon"/><transition cond="true" target="b"/></state>
    <state id="b"><transition event="error" target="c"/></state><state id="c"/>"""
    assert run(inside).active == ("b",)


def test_an_invocation_that_goes_wrong_is_heard_after_all_that_was_raised() -> None:
    inside = """
    <state id="a"><onentry><raise event="one"/></onentry><invoke type="pigeon"/>
      <transition event="one"><raise event="two"/></transition><transition event="*"/></state>"""
    [step] = run(inside).steps
    assert [microstep.event for microstep in step.microsteps] == ["", "one", "two", "error.execution"]


def test_a_document_that_cannot_be_invoked_is_an_error_of_communication() -> None:
    inside = """
    <state id="s"><invoke src="nowhere.scxml"/><transition event="error.communication" target="t"/></state>
    <state id="t"/>"""
    assert run(inside).active == ("t",)


# what is refused


@pytest.mark.parametrize(
    ("inside", "line", "reason"),
    [
        ('<state id="a"/>\n<stage id="b"/>', 3, "there is no element <stage>"),
        ('\n<state id="a" colour="red"/>', 3, "<state> has no attribute 'colour'; it has id, initial"),
        ('<state id="a"><raise event="e"/></state>', 2, "<raise> cannot stand inside <state>"),
        ('<state id="a">text</state>', 2, "<state> holds text, where none belongs: 'text'"),
        ('<state id="a"/>\n\n<state id="a"/>', 4, "a second state is called 'a'; the first is in line 2"),
        ('<state id="a">\n<transition target="b"/></state>', 3, "target names the unknown state 'b'"),
        ('<state id="a"><onentry><raise/></onentry></state>', 2, "<raise> needs the attribute 'event'"),
        ('<state id="a"><transition target=" "/></state>', 2, "<transition> has an empty target"),
        ('<state id="a"><transition target="a" type="odd"/></state>', 2, "type is 'odd'; known are external, internal"),
        ('<state id="a" initial="a"/>', 2, "<state> says where it begins, but there is no state inside"),
        ('<state id="a"><history id="h"/></state>', 2, "<history> needs exactly one transition"),
        (
            '<state id="a"><state id="b"/><history id="h"><transition target="c"/></history></state><state id="c"/>',
            2,
            "the history of a state cannot lead to 'c', which is not inside it",
        ),
        (
            '<state id="a"><transition target="b c"/></state><state id="b"/><state id="c"/>',
            2,
            "'b' and 'c' cannot be active together",
        ),
        ('<state id="a"><onentry><send/></onentry></state>', 2, "<send> needs an event or content"),
        ('<state id="a"><onentry><send event="e" delay="soon"/></onentry></state>', 2, "'soon' is not a delay"),
        (
            '<state id="a"><onentry><send event="e" eventexpr="f"/></onentry></state>',
            2,
            "<send> has 'event' and 'eventexpr'; only one of them can count",
        ),
        (
            '<datamodel><data id="x" expr="1">2</data></datamodel><state id="a"/>',
            2,
            "<data> says twice what its value is",
        ),
        (
            '<datamodel><data id="_x"/></datamodel><state id="a"/>',
            2,
            "names that begin with '_' belong to the platform",
        ),
        (
            '<state id="a"><onentry><if cond="true"><else/><elseif cond="true"/></if></onentry></state>',
            2,
            "after <else>",
        ),
        ('<state xmlns="" id="a"/>', 2, "<state> has no namespace"),
        (
            '<state id="a"><onentry><x:go xmlns:x="urn:x"/></onentry></state>',
            2,
            "<go> of the namespace urn:x is not an action",
        ),
        ("<datamodel/>", 1, "there is no state"),
    ],
)
def test_what_no_document_may_say_is_refused_with_file_and_line(inside: str, line: int, reason: str) -> None:
    said = refusal(f'<scxml xmlns="{NAMESPACE}" version="1.0">\n{inside}</scxml>')
    assert said.startswith(f"d.scxml, line {line}: ")
    assert reason in said


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<scxml/>", f"line 1: the outermost element is not <scxml> of the namespace {NAMESPACE}"),
        (f'<state xmlns="{NAMESPACE}"/>', "line 1: the outermost element is not <scxml>"),
        (f'<scxml xmlns="{NAMESPACE}">\n<state id="a"></scxml>', "line 2: this is not XML: mismatched tag"),
        ("", "line 1: this is not XML: no element found"),
        (
            f'<scxml xmlns="{NAMESPACE}" datamodel="xpath"><state/></scxml>',
            "datamodel is 'xpath'; known are ecmascript",
        ),
        (f'<scxml xmlns="{NAMESPACE}" version="2.0"><state/></scxml>', "version is '2.0'; known are 1.0"),
    ],
)
def test_what_is_no_document_is_refused(text: str, reason: str) -> None:
    assert reason in refusal(text)


@pytest.mark.parametrize(
    "declaration",
    [
        '<!DOCTYPE scxml [<!ENTITY a "a"><!ENTITY b "&a;&a;">]>',
        '<!DOCTYPE scxml [<!ENTITY file SYSTEM "file:///etc/hostname">]>',
        '<!DOCTYPE scxml SYSTEM "https://example.org/scxml.dtd">',
    ],
    ids=["entities that grow", "an entity from a file", "a declaration from elsewhere"],
)
def test_a_document_type_declaration_is_refused_before_anything_of_it_is_used(declaration: str) -> None:
    said = refusal(f'{declaration}\n<scxml xmlns="{NAMESPACE}"><state id="&b;"/></scxml>')
    assert said == "d.scxml, line 1: a document type declaration is not read; remove it"


def test_elements_nested_without_end_are_refused() -> None:
    deep = "<state>" * 500 + "</state>" * 500
    assert "nested more than" in refusal(f'<scxml xmlns="{NAMESPACE}">{deep}</scxml>')


def test_foreign_elements_and_attributes_are_ignored_where_no_action_is_expected() -> None:
    inside = '<x:note xmlns:x="urn:x">!</x:note><state id="a" y:colour="red" xmlns:y="urn:y"><y:box/></state>'
    assert run(inside).active == ("a",)


# writing


def topology(machine: Machine) -> tuple[Any, ...]:
    chart = machine.chart
    places = [(place.name, place.kind, place.parent, place.initial, place.default) for place in chart.places]
    deep = [place.name for place in chart.places if getattr(place.node, "deep", False)]
    rows = [(row.source, row.descriptors, row.targets, row.internal) for place in chart.places for row in place.rows]
    return places, deep, rows


def trusty(data: Any, event: Event) -> bool:
    return True


def stamp(data: Any, event: Event) -> Any:
    return data


def office() -> Machine:
    """A machine written in Python, with a bit of everything."""
    return Machine(
        "office",
        start="open",
        states=[
            State(
                "open",
                [
                    State("front", enter=Alarm(Named("bell"), 3)),
                    Parallel("back", [State("left", [State("l1"), Final("l2")]), State("right")], exit=stamp),
                    History("last", "front", deep=True),
                ],
                start="front",
                max_visits=9,
            ),
            State("shut"),
            Final("sold", result=stamp),
        ],
        moves=[
            On("front", "bell", to="back", when=trusty, do=stamp, at_most=3),
            On("front", otherwise, to="back"),
            On("l1", "go", to="l2"),
            On("left", Done, to="open", internal=True),
            On("open", "close", to="shut"),
            On("shut", "open", to="last"),
            On("shut", always, to="sold", when=lambda data, event: False),
            On(anywhere, "sell", to="sold"),
        ],
    )


def test_a_machine_written_in_python_keeps_its_topology_as_a_document() -> None:
    machine = office()
    places, deep, rows = topology(machine)
    found_places, found_deep, found_rows = topology(read(write(machine), file="office").machine)
    assert (found_places, found_deep) == (places, deep)
    everywhere = [row for row in rows if row[0] == 0]
    assert {row for row in found_rows if row not in rows} == {
        (machine.chart.by_name[name], *row[1:]) for row in everywhere for name in ("open", "shut")
    }
    assert all(row in found_rows for row in rows if row[0] != 0)


def test_what_scxml_has_no_word_for_is_written_by_name() -> None:
    text = write(office())
    assert 'moot:when="trusty" moot:at-most="3" moot:do="stamp"' in text
    assert '<final id="sold" moot:result="stamp"/>' in text
    assert 'moot:exit="stamp"' in text
    assert 'xmlns:moot="urn:moothall:scxml"' in text
    assert 'xmlns:moot="' not in write(document('<state id="a"/>').machine)


def test_a_name_that_is_no_id_cannot_be_written() -> None:
    with pytest.raises(DefinitionError, match="the state 'two words' cannot be written as SCXML"):
        write(Machine("m", states=[State("two words")], moves=[]))


EVERYTHING = f"""
<datamodel><data id="x" expr="1"/><data id="y"><b xmlns="urn:b">&amp;</b></data></datamodel>
<parallel id="p">
  <onentry><raise event="one"/><log label="a &lt; b" expr="'&amp;'"/></onentry><onentry><raise event="two"/></onentry>
  <onexit><send event="left" delay="10ms"/></onexit>
  <state id="q"><datamodel><data id="z" expr="3"/></datamodel>
    <initial><transition target="q2"><raise event="three"/></transition></initial>
    <history id="h"><transition target="q1"><raise event="four"/></transition></history>
    <state id="q1"><transition event="go" target="o"/></state>
    <state id="q2"><transition event="three" cond="In('q')" target="q1" type="internal"/></state>
  </state>
  <state id="r"><transition event="left *" cond="false"/></state>
</parallel>
<state id="o"><transition event="left" target="h"/><transition event="invoke" target="s"/></state>
{invoking('<final id="f"><donedata><content>7</content></donedata></final>', finalize="<finalize><log/></finalize>")}
"""


def test_a_round_trip_changes_neither_topology_nor_behaviour() -> None:
    first = document(EVERYTHING, 'initial="p" name="all"')
    text = write(first.machine)
    second = read(text, file="d.scxml")
    assert topology(second.machine) == topology(first.machine)
    assert write(second.machine) == text
    assert second.machine.digest == first.machine.digest
    runs = [session(document) for document in (first, second)]
    for running in runs:
        for event in ("go", "left", "go", "invoke"):
            running.send(Named(event))
        running.settle()
    traces = [[step.microsteps for step in running.steps] for running in runs]
    assert traces[0] == traces[1]
    assert runs[0].active == runs[1].active == ("late",)
