"""Agents of other libraries as agents of a machine: pydantic-ai and LangChain themselves, with their offline models."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from moothall import Final, GaveUp, Machine, On, Outcome, Replied, State, ask, run
from moothall.agents.ask import AskAgent
from moothall.agents.outside import library_of
from moothall.app.kinds.guests import adapt_guests
from moothall.errors import DefinitionError
from moothall.performers.agents import AgentPerformer
from moothall.runtime.ports import Context

pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed")
pytest.importorskip("langchain_core", reason="langchain-core is not installed")

from langchain_core.language_models import FakeListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

SALTY = {"good": True, "notes": "salty"}
"""What a verdict is in data that have no type: plain JSON, live and after a reload."""


@dataclass(frozen=True)
class Verdict:
    good: bool
    notes: str = ""


class Judged(BaseModel):
    good: bool
    notes: str


def asking(agent: Any, reply: Any = None) -> Machine:
    return Machine(
        "asking",
        data=dict,
        states=[State("asking", enter=ask(agent, "Judge {draft}", reply=reply)), Final("over"), Final("lost")],
        moves=[
            On("asking", Replied, to="over", do=lambda data, event: {"text": event.text, "value": event.value}),
            On("asking", GaveUp, to="lost", do=lambda data, event: {"why": event.reason}),
        ],
    )


def asked(agent: Any, reply: Any = None) -> Outcome:
    """What becomes of a run that asks this agent, passed by a name."""
    return run(asking("critic", reply), {"draft": "the sea"}, agents={"critic": agent}, store="memory")


# pydantic-ai


def function_model(*, output: Any = None) -> FunctionModel:
    """A model that quotes what it hears, or gives this value by the tool that it is offered for that."""

    def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if info.output_tools:
            return ModelResponse([ToolCallPart(info.output_tools[0].name, output)])
        return ModelResponse([TextPart(f"heard {messages[0].parts[-1].content}")])  # type: ignore[union-attr]

    return FunctionModel(reply)


def test_an_agent_of_pydantic_ai_replies_with_its_text_and_its_tokens() -> None:
    outcome = asked(Agent(function_model()))
    assert outcome.states == ("over",)
    assert outcome.data["text"] == "heard Judge the sea"
    assert outcome.spent["calls"] == 1
    assert outcome.spent["tokens"] > 0


def test_it_may_stand_in_the_table_by_its_name() -> None:
    machine = asking(Agent(function_model(), name="critic"))
    assert run(machine, {"draft": "x"}, store="memory").data["text"] == "heard Judge x"


def test_it_is_asked_for_the_shape_of_the_table() -> None:
    outcome = asked(Agent(function_model(output={"good": True, "notes": "salty"})), Verdict)
    assert outcome.data["value"] == SALTY
    assert asked(Agent(function_model(output={"value": [1, 2]})), list[int]).data["value"] == [1, 2]
    assert asked(Agent(function_model()), str).data["value"] == "heard Judge the sea"


def test_an_output_type_of_its_own_is_left_alone_and_has_to_fit() -> None:
    agent = Agent(function_model(output={"good": True, "notes": "salty"}), output_type=Judged)
    assert asked(agent, Verdict).data["value"] == SALTY
    assert asked(agent).data["text"] == '{"good": true, "notes": "salty"}'
    wrong = asked(agent, int)
    assert wrong.states == ("lost",)
    assert "critic: the reply has the wrong shape" in wrong.data["why"]


def test_the_output_type_of_an_agent_in_the_table_is_the_shape_of_its_reply() -> None:
    judge = Agent(function_model(output={"good": True, "notes": "salty"}), output_type=Judged, name="judge")
    machine = asking(judge)
    assert machine.shapes == {"Judged": Judged}
    assert run(machine, {"draft": "the sea"}).data["value"] == SALTY
    assert asking(judge, Verdict).shapes == {"Verdict": Verdict}
    assert not asking(Agent(function_model(), name="talker")).shapes
    assert not asking(Agent(function_model(), output_type=[str, int], name="either")).shapes


def test_its_own_tools_are_its_own_business() -> None:
    agent = Agent(TestModel())
    called: list[str] = []

    @agent.tool_plain
    def look_up(word: str) -> str:
        called.append(word)
        return "found"

    assert asked(agent).states == ("over",)
    assert len(called) == 1


def test_what_it_raises_is_tried_again_and_what_it_used_is_charged() -> None:
    agent = Agent(TestModel())
    calls: list[str] = []

    @agent.tool_plain
    def look_up(word: str) -> str:
        calls.append(word)
        raise ValueError("no line")

    outcome = asked(agent)
    assert outcome.states == ("lost",)
    assert "ValueError: no line" in outcome.data["why"]
    assert outcome.data["why"].endswith("3 attempts")
    assert len(calls) == 3
    assert outcome.spent["tokens"] > 0


def test_a_mistake_in_its_use_is_not_tried_again() -> None:
    outcome = asked(Agent())
    assert outcome.states == ("lost",)
    assert "pydantic-ai: " in outcome.data["why"]
    assert "attempts" not in outcome.data["why"]


# LangChain


class Spending(GenericFakeChatModel):
    """A fake of LangChain that can be asked for a shape: it calls the tool that it is bound to."""

    def bind_tools(self, tools: Any, **_: Any) -> Runnable[Any, Any]:
        return self


def message(text: str = "", **more: Any) -> AIMessage:
    return AIMessage(text, usage_metadata={"input_tokens": 30, "output_tokens": 12, "total_tokens": 42}, **more)


def test_a_chat_model_of_langchain_replies_with_its_text_and_its_tokens() -> None:
    outcome = asked(GenericFakeChatModel(messages=iter([message("salty")])))
    assert outcome.data["text"] == "salty"
    assert outcome.spent == {"calls": 1, "tokens": 42}


def test_tokens_that_nobody_reports_are_unknown() -> None:
    outcome = asked(FakeListChatModel(responses=["salty"]))
    assert outcome.data["text"] == "salty"
    assert outcome.spent == {"calls": 1}


def test_a_chain_takes_the_prompt_and_the_tokens_inside_it_count() -> None:
    prompt = ChatPromptTemplate.from_messages([("system", "You judge."), ("user", "{draft}")])
    chain = prompt | GenericFakeChatModel(messages=iter([message("salty")])) | StrOutputParser()
    outcome = asked(chain)
    assert outcome.data["text"] == "salty"
    assert outcome.spent["tokens"] == 42


def test_a_chat_model_is_asked_for_the_shape_of_the_table() -> None:
    call = {"name": "reply", "args": {"good": True, "notes": "salty"}, "id": "1"}
    outcome = asked(Spending(messages=iter([message(tool_calls=[call])])), Verdict)
    assert outcome.data["value"] == SALTY
    assert outcome.spent["tokens"] == 42


@pytest.mark.parametrize(
    "runnable",
    [
        FakeListChatModel(responses=['{"good": true, "notes": "salty"}']),
        RunnableLambda(lambda prompt: {"good": True, "notes": "salty"}),
        RunnableLambda(lambda prompt: Judged(good=True, notes="salty")),
    ],
    ids=["a text of JSON", "a dict", "a model of pydantic"],
)
def test_a_value_is_taken_as_it_comes_where_a_shape_cannot_be_asked_for(runnable: Any) -> None:
    assert asked(runnable, Verdict).data["value"] == SALTY


def test_a_text_where_a_shape_was_asked_for_has_the_wrong_shape() -> None:
    outcome = asked(FakeListChatModel(responses=["well, salty"]), Verdict)
    assert outcome.states == ("lost",)
    assert "critic: the reply has the wrong shape" in outcome.data["why"]


def test_what_a_runnable_raises_is_tried_again() -> None:
    calls: list[str] = []

    def fail(prompt: str) -> str:
        calls.append(prompt)
        raise ConnectionError("no line")

    outcome = asked(RunnableLambda(fail))
    assert outcome.states == ("lost",)
    assert "critic: ConnectionError: no line" in outcome.data["why"]
    assert len(calls) == 3


# Both


def waiting_agent(begun: asyncio.Event, cancelled: list[bool]) -> Callable[[Any], Any]:
    async def wait(_: Any) -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise
        return ""

    return wait


@pytest.mark.anyio
@pytest.mark.parametrize("library", ["pydantic_ai", "langchain_core"])
async def test_a_guest_at_work_can_be_cancelled(library: str) -> None:
    begun, cancelled = asyncio.Event(), list[bool]()
    wait = waiting_agent(begun, cancelled)

    async def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse([TextPart(await wait(None))])

    guest: Any = Agent(FunctionModel(reply)) if library == "pydantic_ai" else RunnableLambda(wait)
    performer = AgentPerformer(adapt_guests({"critic": guest}), None, {})
    task = asyncio.create_task(performer(AskAgent("critic", "Judge"), Context("run-1", "run-1.0.0", 1, 1)))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cancelled == [True]


@pytest.mark.parametrize("guest", [Agent(TestModel()), FakeListChatModel(responses=["x"])], ids=["Agent", "Runnable"])
def test_a_guest_without_a_name_cannot_stand_in_a_table(guest: Any) -> None:
    with pytest.raises(DefinitionError, match=r"has no name; name it, or ask\('NAME', …\) and pass agents="):
        ask(guest, "Judge")


def test_a_guest_brings_its_own_tools_and_gets_none_of_the_machine() -> None:
    async def look_up(word: str) -> str:
        return word

    machine = Machine(
        "turning",
        data=dict,
        states=[State("asking", enter=ask("critic", "Judge", tools=[look_up])), Final("over"), Final("lost")],
        moves=[
            On("asking", Replied, to="over"),
            On("asking", GaveUp, to="lost", do=lambda data, event: {"why": event.reason}),
        ],
    )
    outcome = run(machine, {}, agents={"critic": Agent(TestModel())}, store="memory")
    assert outcome.states == ("lost",)
    assert "critic brings tools of its own; ask it without tools=" in outcome.data["why"]


@pytest.mark.parametrize("other", [len, "critic", TestModel(), Judged(good=True, notes=""), object()], ids=repr)
def test_what_is_no_agent_of_a_library_is_left_alone(other: Any) -> None:
    assert library_of(other) == ""


def test_no_library_is_loaded_for_functions_alone(tmp_path: Path) -> None:
    program = """
import sys
from moothall import Final, Machine, On, Replied, State, ask, run
async def critic(prompt): return "salty"
M = Machine("m", states=[State("asking", enter=ask(critic, "Judge")), Final("over")],
            moves=[On("asking", Replied, to="over")])
assert run(M, store="memory").status == "done"
print(sorted({"pydantic_ai", "langchain_core", "pydantic"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
