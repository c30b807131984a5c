"""Spans, counters and logs of runs: with the SDK of OpenTelemetry, the client of Prometheus, and a real GET."""

import json
import os
import re
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from moothall import (
    Answered,
    ChildDone,
    Final,
    GaveUp,
    Machine,
    On,
    Outcome,
    Replied,
    Reply,
    Returned,
    State,
    answer,
    ask,
    call,
    child,
    question,
    resume,
    run,
)
from moothall.app.config.access import opened
from moothall.app.config.doctor import examine
from moothall.app.notify.telemetry.listener import Telemetry
from moothall.app.notify.telemetry.log import Log
from moothall.app.notify.telemetry.parts import Part, parts_of
from moothall.app.runs.begin import Terms, begin
from moothall.app.runs.moothall import wait_for
from moothall.app.runs.resume import answer as answer_in
from moothall.errors import DefinitionError
from moothall.runtime.journal import Record
from tests.app.around import context_over

pytest.importorskip("opentelemetry.sdk", reason="the SDK of OpenTelemetry is not installed")
pytest.importorskip("prometheus_client", reason="the client of Prometheus is not installed")

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from moothall.app.notify.telemetry.spans import asked_model, place_of


@dataclass(frozen=True)
class Letter:
    to: str
    text: str = ""


async def clerk(prompt: str) -> Reply:
    return Reply(f"{prompt}, with love and prose", usage={"tokens": 120, "usd": 0.25})


async def post(text: str) -> str:
    return f"posted {text}"


def keep(letter: Letter, reply: Replied) -> Letter:
    return replace(letter, text=reply.text)


SENT = Machine(
    "sent",
    data=Letter,
    states=[
        State("writing", enter=ask(clerk, "Dear {to}")),
        State("asking", enter=question("Send it?")),
        State("posting", enter=call(post, "text")),
        Final("over"),
    ],
    moves=[
        On("writing", Replied, to="asking", do=keep),
        On("asking", Answered, to="posting"),
        On("posting", Returned, to="over"),
    ],
)
WRITING = Machine(
    "writing",
    data=Letter,
    states=[State("writing", enter=ask(clerk, "Dear {to}")), Final("over")],
    moves=[On("writing", Replied, to="over", do=keep)],
)
OFFICE = Machine(
    "office",
    data=Letter,
    states=[State("delegating", enter=child(WRITING, "to")), Final("over")],
    moves=[On("delegating", ChildDone, to="over")],
)


async def broken(prompt: str) -> str:
    raise ValueError("the clerk is ill: secret prose")


FAILING = Machine(
    "failing",
    data=Letter,
    states=[State("writing", enter=ask(broken, "Dear {to}")), Final("over"), Final("lost")],
    moves=[On("writing", Replied, to="over"), On("writing", GaveUp, to="lost")],
)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


def counted(text: str) -> dict[str, float]:
    """What a page of metrics says: name and labels, and the number."""
    lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    return {name: float(number) for name, _, number in lines}


class Watched:
    """Runs machines under the eyes of telemetry, each time as another process would."""

    def __init__(self, store: str) -> None:
        self.store = store
        self.said: list[str] = []
        self.pages: list[dict[str, float]] = []

    def __call__(self, parts: str, machine: Machine, name: str = "mine", given: Any = "Ada") -> Outcome:
        return self._with(parts, lambda around: begin(around, machine, given, Terms(name)))

    def answered(self, parts: str, name: str, machine: Machine) -> Outcome:
        return self._with(parts, lambda around: answer_in(around, name, True, machine=machine))

    def _with(self, parts: str, work: Any) -> Outcome:
        telemetry = Telemetry(parts_of(parts), self.said.append)
        try:
            with opened(self.store) as kept:
                outcome: Outcome = wait_for(work(context_over(kept, telemetry.listener(self.store))))
            telemetry.wait_until_seen()
            if self.said and self.said[-1].startswith("counters at "):
                with urlopen(self.said[-1].removeprefix("counters at "), timeout=5) as answered:
                    self.pages.append(counted(answered.read().decode()))
            return outcome
        finally:
            telemetry.close()


@pytest.fixture
def watched(address: str) -> Watched:
    return Watched(address)


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> TracerProvider:
    """An SDK that is set up, as a user would do it once in a program."""
    found = TracerProvider()
    monkeypatch.setattr(trace, "get_tracer", found.get_tracer)
    return found


@pytest.fixture
def exported(provider: TracerProvider) -> InMemorySpanExporter:
    """The spans that leave it."""
    exporter = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return exporter


def by_name(exporter: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {one.name: one for one in exporter.get_finished_spans()}


def traces(exporter: InMemorySpanExporter) -> set[int]:
    return {one.context.trace_id for one in exporter.get_finished_spans() if one.context is not None}


# Spans


def test_every_effect_is_a_span_with_ids_of_run_step_and_effect(
    watched: Watched, exported: InMemorySpanExporter
) -> None:
    watched("spans", SENT)
    asked = by_name(exported)["invoke_agent clerk"]
    assert asked.attributes is not None
    assert dict(asked.attributes) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "clerk",
        "gen_ai.usage.total_tokens": 120,
        "moothall.usd": 0.25,
        "moothall.run": "mine",
        "moothall.machine": "sent",
        "moothall.step": 0,
        "moothall.effect": "0.0",
        "moothall.kind": "ask.agent",
        "moothall.state": "writing",
        "moothall.outcome": "replied",
        "moothall.attempts": 1,
    }
    around = by_name(exported)["invoke_workflow sent"]
    assert asked.parent is not None
    assert around.context is not None
    assert asked.parent.span_id == around.context.span_id


def test_a_run_that_goes_on_elsewhere_goes_on_in_the_same_trace_and_its_question_is_told_whole(
    watched: Watched, exported: InMemorySpanExporter
) -> None:
    watched("spans", SENT)
    assert "ask.person a person" not in by_name(exported)
    before = exported.get_finished_spans()
    [wanted] = [one.end_time for one in before if one.name == "invoke_agent clerk"]
    watched.answered("spans", "mine", SENT)
    assert len(traces(exported)) == 1
    spans = by_name(exported)
    asked, posted = spans["ask.person a person"], spans["execute_tool post"]
    assert asked.start_time == wanted
    assert asked.end_time == posted.start_time
    assert posted.attributes is not None
    assert posted.attributes["gen_ai.tool.name"] == "post"


def test_the_trace_of_a_run_follows_from_its_id(watched: Watched, exported: InMemorySpanExporter) -> None:
    watched("spans", WRITING, "one")
    first = traces(exported)
    watched("spans", WRITING, "two")
    assert len(traces(exported)) == 2
    exported.clear()
    watched.store += "-other"
    watched("spans", WRITING, "one")
    assert traces(exported) == first


def test_a_child_is_part_of_the_trace_of_its_parent_below_the_effect_that_started_it(
    watched: Watched, exported: InMemorySpanExporter
) -> None:
    watched("spans", OFFICE)
    assert len(traces(exported)) == 1
    spans = by_name(exported)
    started = [one for one in exported.get_finished_spans() if (one.attributes or {}).get("moothall.effect") == "0.0"]
    [starting] = [one for one in started if (one.attributes or {})["moothall.kind"] == "start.child"]
    child_run = next(
        one
        for one in exported.get_finished_spans()
        if (one.attributes or {}).get("moothall.run") == "mine-0-0" and "moothall.effect" not in (one.attributes or {})
    )
    assert child_run.parent is not None
    assert starting.context is not None
    assert child_run.parent.span_id == starting.context.span_id
    assert "invoke_agent clerk" in spans


PLAYED = Machine(
    "played",
    data=None,
    states=[State("asking", enter=ask("critic", "Well?")), Final("over")],
    moves=[On("asking", Replied, to="over")],
)


def test_of_several_models_a_span_names_the_one_that_replied(
    watched: Watched, exported: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "said.json").write_text('{"critic": ["Well."]}')
    several = f"scripted:{tmp_path / 'said.json'}|rehearsal"
    monkeypatch.setenv("MOOTHALL_MODEL", several)
    assert watched("spans", PLAYED, given=None).status == "done"
    attributes = by_name(exported)[f"chat {several}"].attributes
    assert attributes is not None
    assert attributes["gen_ai.response.model"] == f"scripted:{tmp_path / 'said.json'}"


def test_asking_a_model_is_a_chat_with_it(
    watched: Watched, exported: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOOTHALL_MODEL", "rehearsal")
    assert watched("spans", PLAYED, given=None).status == "done"
    attributes = by_name(exported)["chat rehearsal"].attributes
    assert attributes is not None
    assert (attributes["gen_ai.request.model"], attributes["gen_ai.agent.name"]) == ("rehearsal", "critic")
    assert attributes["gen_ai.usage.total_tokens"]


def test_a_model_is_named_as_the_conventions_name_it() -> None:
    assert asked_model("openai:gpt-5@http://gpu:8000/v1") == {
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-5",
        "server.address": "gpu",
        "server.port": 8000,
    }
    assert asked_model("openai:gpt-5@https://gpu/v1").get("server.port") is None
    assert asked_model("rehearsal") == {"gen_ai.request.model": "rehearsal"}


def test_attempts_are_events_and_what_failed_is_an_error_without_prose(
    watched: Watched, exported: InMemorySpanExporter
) -> None:
    outcome = watched("spans", FAILING)
    assert outcome.states == ("lost",)
    asked = by_name(exported)["invoke_agent broken"]
    assert [one.name for one in asked.events] == ["effect.faltered", "effect.faltered"]
    assert asked.status.status_code is StatusCode.ERROR
    assert asked.attributes is not None
    assert (asked.attributes["error.type"], asked.attributes["moothall.attempts"]) == ("error.effect", 3)
    assert all("secret prose" not in one.to_json() for one in exported.get_finished_spans())


# Across processes

MORTAL = """
import os, sys
from pathlib import Path
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from moothall import Final, Machine, On, Replied, State, ask, resume, run

provider = TracerProvider()
exporter = ConsoleSpanExporter(formatter=lambda span: span.to_json(None) + chr(10))
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)

async def first(prompt):
    return "one"

async def second(prompt):
    if not Path("died").exists():
        Path("died").touch()
        os._exit(9)
    return "two"

M = Machine("mortal", data=None,
    states=[State("one", enter=ask(first, "?")), State("two", enter=ask(second, "?")), Final("over")],
    moves=[On("one", Replied, to="two"), On("two", Replied, to="over")])

if sys.argv[1] == "run":
    run(M, run_id="mine", store="sqlite:runs.db")
else:
    assert resume("mine", M, store="sqlite:runs.db").status == "done"
"""


def test_a_run_that_was_killed_goes_on_in_the_same_trace_and_tells_what_was_under_way_from_when_it_was_wanted(
    tmp_path: Path,
) -> None:
    (tmp_path / "mortal.py").write_text(MORTAL)
    environment = {**os.environ, "MOOTHALL_TELEMETRY": "spans", "MOOTHALL_HOME": str(tmp_path)}

    def spans(way: str, code: int) -> dict[str, Any]:
        command = [sys.executable, "mortal.py", way]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == code, done.stderr
        return {one["name"]: one for one in map(json.loads, done.stdout.splitlines())}

    before, after = spans("run", 9), spans("resume", 0)
    assert before.keys() <= {"invoke_agent first"}
    assert after.keys() == {"invoke_agent second", "invoke_workflow mortal"}
    found = {one["context"]["trace_id"] for one in (*before.values(), *after.values())}
    assert found == {f"0x{place_of(Record('mine', '', '', 0)).trace_id:032x}"}
    asked, around = after["invoke_agent second"], after["invoke_workflow mortal"]
    assert asked["start_time"] < around["start_time"]
    assert asked["parent_id"] == around["context"]["span_id"]


# Counters


def test_counters_are_served_on_the_loopback(watched: Watched) -> None:
    watched("counters:0", SENT)
    watched.answered("counters:0", "mine", SENT)
    assert re.fullmatch(r"counters at http://127\.0\.0\.1:\d+/metrics", watched.said[0])
    first, second = watched.pages
    assert first['moothall_runs_total{machine="sent",status="began"}'] == 1
    assert first['moothall_transitions_total{machine="sent",state="asking"}'] == 1
    assert first['moothall_effects_total{kind="ask.agent",machine="sent",outcome="done"}'] == 1
    assert first['moothall_tokens_total{agent="clerk",model="own functions"}'] == 120
    assert first['moothall_usd_total{agent="clerk",model="own functions"}'] == 0.25
    assert 'moothall_runs_total{machine="sent",status="done"}' not in first
    assert second['moothall_runs_total{machine="sent",status="done"}'] == 1
    assert second['moothall_effects_total{kind="ask.person",machine="sent",outcome="done"}'] == 1
    assert second['moothall_effect_seconds_count{kind="ask.person",machine="sent"}'] == 1
    assert not [name for name in second if name.startswith("moothall_tokens")]


def test_what_a_child_spends_is_counted_once(watched: Watched) -> None:
    watched("counters:0", OFFICE)
    [page] = watched.pages
    assert page['moothall_tokens_total{agent="clerk",model="own functions"}'] == 120
    assert page['moothall_runs_total{machine="writing",status="done"}'] == 1


def test_a_port_that_is_taken_is_told_and_the_run_goes_on(watched: Watched, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert watched(f"counters:{port},log:{tmp_path / 'log'}", WRITING).status == "done"
    assert watched.said == [f"telemetry: counters:{port} is left out: Address already in use"]
    assert len(lines(tmp_path / "log")) == 2


# Log


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log.jsonl"


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_every_entry_is_a_line_with_its_ids_and_without_what_was_said(watched: Watched, log: Path) -> None:
    watched(f"log:{log}", SENT)
    watched.answered(f"log:{log}", "mine", SENT)
    told = lines(log)
    assert [(one["run"], one["machine"], one["step"], one["effect"], one["event"]) for one in told] == [
        ("mine", "sent", 0, None, "run.started"),
        ("mine", "sent", 1, "0.0", "replied"),
        ("mine", "sent", 2, "1.0", "answered"),
        ("mine", "sent", 3, "2.0", "returned"),
    ]
    assert told[1]["usage"] == {"tokens": 120, "usd": 0.25}
    assert {one["level"] for one in told} == {"info"}
    assert told[3]["status"] == "done"
    assert "prose" not in log.read_text()
    assert "Ada" not in log.read_text()


def test_what_goes_wrong_has_a_level_of_its_own_and_no_prose_either(watched: Watched, log: Path) -> None:
    watched(f"log:{log}", FAILING)
    assert [(one["event"], one["level"]) for one in lines(log)][1:] == [
        ("effect.faltered", "warning"),
        ("effect.faltered", "warning"),
        ("error.effect", "error"),
    ]
    assert "prose" not in log.read_text()


def test_a_secret_in_a_name_does_not_get_into_the_log(watched: Watched, log: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("DESK_TOKEN", "ada-the-clerk")
    machine = Machine(
        "desk",
        states=[State("asking", enter=ask("ada-the-clerk", "Well?")), Final("over")],
        moves=[On("asking", Replied, to="over")],
    )
    telemetry = Telemetry(parts_of(f"log:{log}"), watched.said.append)
    with opened(watched.store) as kept:
        around = replace(context_over(kept, telemetry.listener(watched.store)), agents={"ada-the-clerk": clerk})
        wait_for(begin(around, machine, None, Terms("mine")))
    telemetry.close()
    assert "ada-the-clerk" not in log.read_text()
    assert "[secret:DESK_TOKEN]" in log.read_text()


def test_a_log_that_cannot_be_written_is_refused(watched: Watched, tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match=r"the log .*nowhere.* cannot be written: No such file or directory"):
        watched(f"log:{tmp_path / 'nowhere' / 'log'}", SENT)


# No harm


class Raising(SpanProcessor):
    """A processor of a user that does not work."""

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        raise RuntimeError("no exporter")


class Hanging(SpanProcessor):
    """A processor of a user that waits for ever, or until it is let go."""

    def __init__(self, when: str) -> None:
        self.when, self.let_go = when, threading.Event()

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        self._hang("on_start")

    def on_end(self, span: ReadableSpan) -> None:
        self._hang("on_end")

    def _hang(self, where: str) -> None:
        if where == self.when:
            self.let_go.wait(60)


def test_a_part_that_raises_is_left_out_and_the_others_and_the_run_go_on(
    watched: Watched, log: Path, provider: TracerProvider
) -> None:
    provider.add_span_processor(Raising())
    outcome = watched(f"spans,log:{log}", WRITING)
    assert outcome.status == "done"
    assert watched.said == ["telemetry: spans is left out from now on: RuntimeError: no exporter"]
    assert len(lines(log)) == 2


@pytest.mark.parametrize("when", ["on_start", "on_end"])
@pytest.mark.slow
def test_a_part_that_hangs_holds_up_neither_a_run_nor_the_end(
    watched: Watched, provider: TracerProvider, when: str
) -> None:
    hanging = Hanging(when)
    provider.add_span_processor(hanging)
    assert watched("spans", SENT).status == "waiting"
    assert not hanging.let_go.is_set()
    hanging.let_go.set()


# What is set


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ()),
        ("spans", (Part("spans"),)),
        (" spans , log:a:b.jsonl,counters:9464,", (Part("spans"), Part("log", "a:b.jsonl"), Part("counters", "9464"))),
    ],
)
def test_parts_are_named_with_commas_between(text: str, parts: tuple[Part, ...]) -> None:
    assert parts_of(text) == parts


@pytest.mark.parametrize("text", ["span", "counters", "counters:x", "counters:70000", "counters:-1", "log:", "spans:1"])
def test_what_is_no_part_says_how_to_write_one(text: str) -> None:
    with pytest.raises(DefinitionError, match="is not telemetry; write spans, counters:PORT, log or log:FILE"):
        parts_of(text)


def test_a_part_is_named_once() -> None:
    with pytest.raises(DefinitionError, match="log is named twice"):
        parts_of("log,log:file")


def test_a_program_is_watched_as_the_environment_says(address: str, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOOTHALL_TELEMETRY", f"log:{log}")
    run(SENT, "Ada", run_id="mine", store=address)
    assert [one["event"] for one in lines(log)] == ["run.started", "replied"]
    run(WRITING, "Ada", run_id="other", store="memory")
    assert [one["run"] for one in lines(log)] == ["mine", "mine", "other", "other"]
    log.unlink()
    answer("mine", True, SENT, store=address)
    assert resume("mine", SENT, store=address).status == "done"
    assert [one["event"] for one in lines(log)] == ["answered", "returned"]


def test_the_doctor_tells_what_is_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOOTHALL_TELEMETRY", "spans,counters:9464")
    [check] = [one for one in examine("memory") if one.name == "telemetry"]
    assert (check.level, check.says) == ("ok", "spans, counters:9464 (MOOTHALL_TELEMETRY)")
    monkeypatch.setenv("MOOTHALL_TELEMETRY", "smoke")
    [check] = [one for one in examine("memory") if one.name == "telemetry"]
    assert (check.level, check.says.partition(";")[0]) == (
        "problem",
        "MOOTHALL_TELEMETRY: telemetry: 'smoke' is not telemetry",
    )


def test_a_log_that_is_a_pipe_which_nobody_reads_is_refused_at_once(watched: Watched, log: Path) -> None:
    os.mkfifo(log)
    with pytest.raises(DefinitionError, match="is a named pipe that nobody reads; start its reader first"):
        watched(f"log:{log}", WRITING)


def test_a_pipe_that_is_full_holds_no_run_up_and_is_written_on_when_it_is_read(watched: Watched, log: Path) -> None:
    os.mkfifo(log)
    reader = os.open(log, os.O_RDONLY | os.O_NONBLOCK)
    filler = os.open(log, os.O_WRONLY | os.O_NONBLOCK)
    with suppress(BlockingIOError):
        while True:
            os.write(filler, b" " * 4096)
    assert watched(f"log:{log}", WRITING).status == "done"
    with suppress(BlockingIOError):
        while os.read(reader, 65_536):
            pass
    assert watched(f"log:{log}", WRITING, name="another").status == "done"
    assert [json.loads(line)["event"] for line in os.read(reader, 65_536).splitlines()] == ["run.started", "replied"]
    os.close(filler)
    os.close(reader)


def test_a_pipe_whose_reader_leaves_is_left_out_and_the_run_goes_on(watched: Watched, log: Path) -> None:
    os.mkfifo(log)
    reader = os.open(log, os.O_RDONLY | os.O_NONBLOCK)
    telemetry = Log(str(log))
    os.close(reader)
    with pytest.raises(OSError, match="No such device"):
        telemetry._write("a line\n")
