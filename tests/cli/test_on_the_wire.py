"""The machines over a wire: a server reads the words and the schema of each request, and says what these let it say.

Nobody here knows more than what stands in the request: who is asked, what is before them, and which fields a reply may
have. So a test that passes shows that a model is told what it needs, and can say what the machine reads.
"""

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from moothall.machines.team.definition import shipped_text
from tests.cli.ran import Moot, Ran
from tests.models.loopback import Asked, Fault, Loopback, Said, Turn, loopback_aside
from tests.team_scripts import typed


class Heard:
    """A request as a model sees it."""

    def __init__(self, asked: Asked) -> None:
        self.body = asked.body
        self.words = "\n".join(str(message["content"]) for message in asked.body["messages"])
        self.last = str(asked.body["messages"][-1]["content"])
        self.fields: dict[str, Any] = self._schema().get("properties", {})
        self.tools = [tool["function"]["name"] for tool in asked.body.get("tools", ())]

    def _schema(self) -> dict[str, Any]:
        """The shape of the reply: of the whole text, or of the call by which a model with tools replies."""
        if "response_format" in self.body:
            schema: dict[str, Any] = self.body["response_format"]["json_schema"]["schema"]
            return schema
        tools = {tool["function"]["name"]: tool["function"] for tool in self.body.get("tools", ())}
        return dict(tools["final_reply"]["parameters"]) if "final_reply" in tools else {}

    def reply(self, **said: Any) -> Said:
        """A reply with fields that the schema has, and of those with a list of values one of these."""
        for name, value in said.items():
            assert name in self.fields, f"nothing in the request offers {name!r}"
            choices = self.fields[name].get("enum")
            assert choices is None or value in choices, f"{name} may be {choices}, not {value!r}"
        if "final_reply" in self.tools:
            return Said("", [("final", "final_reply", json.dumps(said))])
        return Said(json.dumps(said))

    def between(self, start: str, end: str) -> str:
        """The words after `start`, up to `end`."""
        assert start in self.words, f"the request does not have {start!r}"
        return self.words.partition(start)[2].partition(end)[0].strip()


def model_of(served: Loopback) -> str:
    return f"openai:any@{served.address}"


def heard_by(served: Loopback) -> list[Heard]:
    return [Heard(asked) for asked in served.asked]


# a team


def speaker(heard: Heard) -> str:
    return heard.between("You are the ", " of this team")


def studio(asked: Asked) -> Said:
    """The hand-off test of the document, by personas that go by what they are told and by nothing else."""
    heard = Heard(asked)
    if speaker(heard) == "Creative Partner":
        concept = (
            "The tide is the clock." if "REWORK: Game Designer sends your work back: what" in heard.words else "Tides."
        )
        return heard.reply(content=concept, transition="HANDOFF_TO_AGENT", next_agent="game_designer")
    if speaker(heard) == "CEO":
        return heard.reply(content="Worth a prototype.", confidence=0.8)
    work = heard.between("The work before you, by Creative Partner:\n", "\n\n")
    if work == "Tides.":
        return heard.reply(content="No loop.", transition="REQUEST_REWORK", rework_reason="what does the player do?")
    approval = {"transition": "APPROVE_AND_HANDOFF", "approval_status": "APPROVED", "next_agent": "ceo"}
    return heard.reply(content="Now there is a loop.", **approval)


@pytest.mark.covers("T18", "T19", "T20", "T30", "T44", "T47", "T49", "T69")
def test_personas_hand_on_send_back_and_approve_by_what_a_request_tells_and_offers(moot: Moot, tmp_path: Path) -> None:
    with loopback_aside(studio) as served:
        ran = moot("team", "--script", typed(tmp_path, "A game"), "--model", model_of(served), "--json")
    told, requests = ran.json, heard_by(served)
    people = ["creative_partner", "game_designer", "creative_partner", "game_designer", "ceo"]
    assert told["states_visited"][:5] == people
    assert [(known["by"], known["author"]) for known in told["approvals"]] == [("game_designer", "creative_partner")]
    assert told["rework"] == 1
    personas = [heard for heard in requests if "You are the " in heard.words]
    reply = {"content", "transition", "next_agent", "approval_status", "rework_reason", "confidence"}
    assert [reply & heard.fields.keys() for heard in personas] == [reply] * 5
    for heard in personas:
        assert all(f"- `{name}`: " in heard.words for name in heard.fields["next_agent"]["enum"])
    assert "The work before you, by Game Designer:\nNow there is a loop." in personas[-1].words


FAULTS: Sequence[tuple[dict[str, Any], str]] = (
    ({"transition": "PASS_ON", "next_agent": "ceo"}, "transition"),
    ({"transition": "HANDOFF_TO_AGENT", "next_agent": "the boss"}, "next_agent"),
    ({"approval_status": "PERHAPS"}, "approval_status"),
    ({"transition": "HANDOFF_TO_AGENT", "next_agent": "ceo", "approval_status": "REQUEST_REWORK"}, "approval_status"),
    ({"transition": "REQUEST_REWORK"}, "needs a `rework_reason`"),
)


@pytest.mark.covers("T17", "T45", "T48")
@pytest.mark.parametrize(("fields", "complaint"), FAULTS)
def test_a_reply_that_cannot_be_followed_is_shown_back_once(
    moot: Moot, tmp_path: Path, fields: dict[str, Any], complaint: str
) -> None:
    def reply(asked: Asked) -> Said:
        is_second = "cannot be used" in Heard(asked).words or len(asked.body["messages"]) > 3
        return Said(json.dumps({"content": "Once more."} if is_second else {"content": "x", **fields}))

    with loopback_aside(reply) as served:
        ran = moot("team", "--script", typed(tmp_path, "Go"), "--model", model_of(served), "--json")
    first, second = heard_by(served)
    assert complaint in second.last
    assert complaint not in first.last
    assert ran.json["states_visited"] == ["creative_partner", "RespondToUser"]


@pytest.mark.covers("T50")
def test_a_persona_that_needs_an_answer_gives_the_user_the_word_and_gets_it(moot: Moot, tmp_path: Path) -> None:
    def reply(asked: Asked) -> Said:
        heard = Heard(asked)
        if "user: Two months" in heard.words:
            return heard.reply(content="Thank you.")
        return heard.reply(content="How long may it take?", transition="HANDOFF_TO_AGENT", next_agent="RespondToUser")

    with loopback_aside(reply) as served:
        ran = moot("team", "--script", typed(tmp_path, "Go", "Two months"), "--model", model_of(served), "--json")
    ways = [(move["from"], move["to"]) for move in ran.json["transitions"]]
    assert ways == [("RespondToUser", "creative_partner"), ("creative_partner", "RespondToUser")] * 2


@pytest.mark.covers("T80")
def test_scenario_c_the_request_after_a_handoff_by_the_user_has_the_flag_and_the_whole_conversation(
    moot: Moot, tmp_path: Path
) -> None:
    lines = [f"Word {number}" for number in range(9)]
    with loopback_aside(lambda asked: Said(json.dumps({"content": "Yes."}))) as served:
        script = typed(tmp_path, *lines, "!handoff CEO")
        ran = moot("team", "--script", script, "--model", model_of(served), "--json")
    last = heard_by(served)[-1]
    assert speaker(last) == "CEO"
    assert "User-requested transition" in last.last
    assert all(f"user: {line}" in last.last for line in lines)
    assert (ran.json["transitions"][-2]["to"], ran.json["transitions"][-2]["layer"]) == ("ceo", "user")


def studio_file(folder: Path, **persona: Any) -> str:
    """The studio, in which some personas are changed."""
    plain = json.loads(shipped_text("studio"))
    for known in plain["personas"]:
        known.update(persona.get(known["id"], {}))
    (folder / "mine.json").write_text(json.dumps(plain))
    return "mine.json"


@pytest.mark.covers("T9")
def test_a_tool_that_a_model_calls_waits_for_approval_in_the_conversation(moot: Moot, tmp_path: Path) -> None:
    def reply(asked: Asked) -> Said:
        heard = Heard(asked)
        if any(message["role"] == "tool" for message in asked.body["messages"]):
            return heard.reply(content=f"It says: {heard.last}")
        assert "read_file" in heard.tools
        return Said("", [("c1", "read_file", '{"path": "tides.txt"}')])

    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "tides.txt").write_text("high water at noon")
    team = studio_file(tmp_path, creative_partner={"tools": ["read_file"]})
    chosen = ("-c", team, "--workspace", "w", "--policy", "read_file=ask")
    with loopback_aside(reply) as served:
        script = typed(tmp_path, "When?", "!answer yes", "!exit")
        ran = moot("team", *chosen, "--script", script, "--model", model_of(served))
    assert "creative_partner wants to call read_file" in ran.out
    assert ran.out.index("!answer 1 yes | no") < ran.out.index("high water at noon")
    assert len(served.asked) == 2


def test_a_warm_persona_has_its_connection_and_was_asked_nothing_yet(moot: Moot, tmp_path: Path) -> None:
    def reply(asked: Asked) -> Said:
        return Heard(asked).reply(content="Yes.")

    with loopback_aside(reply) as first, loopback_aside(reply) as second:
        team = studio_file(tmp_path, game_designer={"model": model_of(second)})
        begin = typed(tmp_path, "A design question", "!state")
        shown = moot("team", "-c", team, "--script", begin, "--model", model_of(first), "--run-id", "talk").out
        assert re.search(r"warm: game_designer \(since turn 1, [\d:]{8}, 60%\)", shown), shown
        assert (second.connections, second.asked) == (1, [])


@pytest.mark.covers("T23", "T63")
def test_the_line_of_phases_tells_everybody_their_task_and_writes_the_files(moot: Moot, tmp_path: Path) -> None:
    def reply(asked: Asked) -> Said:
        heard = Heard(asked)
        task = heard.between("Your task: ", "\n\n")
        if "as `path: purpose`" in task:
            return heard.reply(content="main.py: the game\ndocs/readme.md: how to play")
        return heard.reply(content="print('tide')\n" if "main.py" in task else f"Done: {task}")

    with loopback_aside(reply) as served:
        script = typed(tmp_path, "!simple", "!start A game about tides", "!approve", "!approve", "!approve", "!exit")
        ran = moot("team", "--script", script, "--workspace", "w", "--model", model_of(served))
    assert ran.code == 0, ran.out + ran.err
    assert [speaker(heard) for heard in heard_by(served) if "Your task" in heard.words] == [
        *("Creative Partner", "Game Designer", "Lead Engineer", "Game Designer", "Creative Partner"),
        *("Project Manager", "CEO", "Project Manager", "Lead Engineer", "Lead Engineer"),
    ]
    assert (tmp_path / "w" / "main.py").read_text() == "print('tide')\n"
    assert (tmp_path / "w" / "docs" / "readme.md").exists()


@pytest.mark.covers("T37")
def test_a_panel_is_asked_at_once_and_joined_by_whoever_is_named_first(moot: Moot, tmp_path: Path) -> None:
    def reply(asked: Asked) -> Said:
        heard = Heard(asked)
        is_last = "Put together what was said about" in heard.words
        return heard.reply(content="All three." if is_last else f"{speaker(heard)} says yes.")

    with loopback_aside(reply) as served:
        script = typed(tmp_path, "!workflow panel ceo, cfo, cmo: what next?", "!exit")
        ran = moot("team", "--script", script, "--model", model_of(served))
    *panel, last = heard_by(served)
    assert sorted(map(speaker, panel)) == ["CEO", "CFO", "CMO"]
    assert all(f"{name} says yes." in last.words for name in ("CFO", "CMO"))
    assert '"outcome": "All three."' in ran.out


# a debate


def debated(moot: Moot, *options: str, answer: Callable[[Heard], Turn], config: dict[str, Any]) -> tuple[Ran, Loopback]:
    """A debate with this configuration, in which a server answers."""
    agents = [{"id": name, "role": name} for name in ("architect", "performance", "kiss")]
    Path("debate.json").write_text(json.dumps({"agents": agents, "debate": config}))
    with loopback_aside(lambda asked: answer(Heard(asked))) as served:
        chosen = ("-c", "debate.json", "--run-id", "talk", "--json", "--model", model_of(served))
        return moot("debate", "Which port?", *chosen, *options), served


def kind_of(heard: Heard) -> str:
    """What a panellist or the judge is asked for, by the words of the request."""
    kinds = {
        "you may ask the user": "clarify",
        "Propose a solution": "propose",
        "You review what others": "critique",
        "Refine your own proposal": "refine",
        "Say how sure you are, from 0 to 100": "evaluate",
        "Summarise the debate so far": "summarise",
        "Write the solution from": "synthesise",
        "Rank these drafts": "rank",
    }
    [kind] = {kind for words, kind in kinds.items() if words in heard.words}
    return kind


WORDS = {"architect": "Harbour walls of stone.", "simplicity": "One plain quay.", "costs": "Cheap floating docks."}


def seat(heard: Heard) -> str:
    """Who is asked, by the words of their role."""
    return next(name for name in WORDS if name in heard.words[:300])


def panellist(heard: Heard, confidence: Callable[[Heard], float] = lambda heard: 90) -> Said:
    """A panellist, or the judge, who says something of its own in every phase."""
    match kind_of(heard):
        case "clarify":
            return heard.reply(questions=[])
        case "propose":
            return heard.reply(text=WORDS[seat(heard)])
        case "critique":
            labels = heard.between("one review for each label (", ")").split(", ")
            return heard.reply(reviews=[{"label": label, "text": f"{seat(heard)} doubts {label}"} for label in labels])
        case "refine":
            own = heard.between("Your proposal:\n", "\n\n")
            return heard.reply(text=f"{own} More {seat(heard)}.")
        case "evaluate":
            return heard.reply(confidence=confidence(heard))
        case "summarise":
            return heard.reply(text="In short.")
        case "rank":
            return heard.reply(ranking=re.findall(r"^\[(\w)\]$", heard.last, re.MULTILINE))
        case _:
            return heard.reply(description="Build the quay.", confidence=80)


def asked_for(served: Loopback, kind: str) -> list[Heard]:
    return [heard for heard in heard_by(served) if kind_of(heard) == kind]


@pytest.mark.covers("D9", "D15", "D16", "D18", "D19", "D22", "D39")
def test_rounds_go_on_until_the_judge_is_sure_and_each_begins_with_the_refinements_before(moot: Moot) -> None:
    def confidence(heard: Heard) -> float:
        return 40 if "After round 1 " in heard.words else 90

    ran, served = debated(moot, answer=lambda heard: panellist(heard, confidence), config={"rounds": 5})
    assert (ran.code, ran.json["rounds"]) == (0, 2), ran.err
    counted = Counter(map(kind_of, heard_by(served)))
    assert counted == {"propose": 3, "critique": 6, "refine": 6, "evaluate": 2, "synthesise": 1, "rank": 3}
    for heard in asked_for(served, "critique")[:3]:
        assert [words in heard.last for words in WORDS.values()].count(True) == 2
        assert WORDS[seat(heard)] not in heard.last
    for heard in asked_for(served, "refine")[3:]:
        assert heard.between("Your proposal:\n", "\n\n") == f"{WORDS[seat(heard)]} More {seat(heard)}."


@pytest.mark.covers("D16", "D24", "D25")
@pytest.mark.parametrize("ending", ["fixed", "convergence"])
def test_rounds_end_at_their_limit_and_a_fixed_number_asks_no_judge(moot: Moot, ending: str) -> None:
    config = {"rounds": 2, "terminationCondition": {"type": ending}}
    ran, served = debated(moot, answer=lambda heard: panellist(heard, lambda _: 10), config=config)
    assert (ran.code, ran.json["rounds"]) == (0, 2), ran.err
    assert len(asked_for(served, "evaluate")) == (0 if ending == "fixed" else 2)
    assert len(asked_for(served, "refine")) == 6
    assert ("MAX_ROUNDS_REACHED" in ran.json["events"], "CONSENSUS_REACHED" in ran.json["events"]) == (True, False)


@pytest.mark.covers("D17")
def test_whoever_has_much_behind_it_sums_up_and_goes_on_with_that(moot: Moot) -> None:
    config = {"rounds": 2, "summarization": {"threshold": 120, "maxLength": 100}}
    ran, served = debated(moot, answer=lambda heard: panellist(heard, lambda _: 10), config=config)
    assert ran.code == 0, ran.err
    summaries = asked_for(served, "summarise")
    assert summaries
    assert all("in at most 100 characters" in heard.words for heard in summaries)
    assert any("In short." in heard.last for heard in asked_for(served, "refine"))


@pytest.mark.covers("D2", "D10", "D11", "D13")
@pytest.mark.parametrize("most", [1, 3])
def test_questions_are_asked_of_everybody_again_with_all_answers_until_all_is_clear(moot: Moot, most: int) -> None:
    def answer(heard: Heard) -> Said:
        if kind_of(heard) != "clarify":
            return panellist(heard)
        if "Forty." in heard.words:
            return heard.reply(questions=[])
        follow_up = "Ten." in heard.words
        is_mine = seat(heard) in (["costs"] if follow_up else ["simplicity"])
        asks = ["How many berths?"] if follow_up else ["How many ships?"]
        return heard.reply(questions=asks if is_mine else [])

    config = {"interactiveClarifications": True, "clarificationsMaxIterations": most}
    agents = [{"id": name, "role": name} for name in ("architect", "performance", "kiss")]
    Path("debate.json").write_text(json.dumps({"agents": agents, "debate": config}))
    with loopback_aside(lambda asked: answer(Heard(asked))) as served:
        chosen = ("-c", "debate.json", "--run-id", "talk", "--model", model_of(served))
        assert moot("debate", "Which port?", *chosen).code == 5
        assert len(asked_for(served, "clarify")) == len(served.asked) == 3
        first = moot("answer", "talk", "--json", '{"q1": "Ten."}')
        if most == 1:
            assert (first.code, len(asked_for(served, "clarify"))) == (0, 3)
            return
        assert first.code == 5
        again = asked_for(served, "clarify")[3:]
        assert len(again) == 3
        assert all("How many ships?" in heard.words and "Ten." in heard.words for heard in again)
        assert moot("answer", "talk", "--json", '{"q2": "Forty."}').code == 0
        last = asked_for(served, "clarify")[6:]
        assert len(last) == 3
        assert all(text in heard.words for heard in last for text in ("Ten.", "How many berths?", "Forty."))
    assert all("Forty." in heard.words for heard in asked_for(served, "propose"))


@pytest.mark.slow
@pytest.mark.covers("D38")
def test_an_agent_that_is_silent_in_the_first_round_is_left_out_when_its_time_is_over(moot: Moot) -> None:
    def answer(heard: Heard) -> Turn:
        is_silent = kind_of(heard) == "propose" and seat(heard) == "costs"
        return Fault(hang=True) if is_silent else panellist(heard)

    ran, served = debated(moot, answer=answer, config={"rounds": 1, "timeoutPerRound": 6000})
    assert ran.code == 0, ran.err
    statuses = {agent["id"]: agent["status"] for agent in ran.json["agents"]}
    assert statuses["performance"] == "left out: it took longer than timeoutPerRound"
    assert "Harbour walls of stone." in asked_for(served, "synthesise")[0].words


# the arena


BETTER = {"id": "read", "kind": "command", "command": "cat missing.txt"}
MENDED = {**BETTER, "command": "cat kept.txt"}


def arena_agent(heard: Heard) -> Said:
    """An agent of the arena, known by what it is asked for; the critic finds what is there to be found."""
    if "You are the classifier" in heard.words:
        return heard.reply(kind="chore", tags=["files"], confidence=0.9)
    if "You are the planner" in heard.words:
        return heard.reply(tasks=[{"id": "read", "kind": "command", "command": "rm kept.txt"}])
    if "Tasks of the plan failed" in heard.words:
        cause = heard.between("What failed:\n", "\n\n\n")
        assert "No such file" in cause
        return heard.reply(diagnosis="there is no such file", plan={"tasks": [MENDED]})
    plan = heard.between("Plan, as JSON:\n", "What was said before")
    approval = {"verdict": "approve", "confidence": 0.9, "reasons": []}
    if "You are the critic" in heard.words and "rm kept.txt" in plan:
        return heard.reply(verdict="reject", confidence=0.95, reasons=["it removes what is to be read"])
    if "You are security" in heard.words and "rm kept.txt" in plan:
        return heard.reply(verdict="abstain", confidence=0.5, reasons=[])
    if "You are the solution" in heard.words and "it removes what is to be read" in heard.words:
        return heard.reply(**approval, plan={"tasks": [BETTER]})
    return heard.reply(**approval)


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
@pytest.mark.covers("A5", "A6", "A7", "A8", "A9", "A11", "A20")
def test_the_arena_plans_debates_again_and_heals_by_what_its_requests_tell(moot: Moot, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "kept.txt").write_text("kept\n")
    with loopback_aside(lambda asked: arena_agent(Heard(asked))) as served:
        options = ("--workspace", "work", "--model", model_of(served), "--json")
        ran = moot("arena", "read the file", *options, "--run-id", "first")
        number = len(served.asked)
        moot("arena", "read the file again", *options)
    told, requests = ran.json, heard_by(served)
    assert (ran.code, told["status"], told["passes"]) == (0, "succeeded", 2), ran.err
    rounds = ["analyst", "solution", "critic", "security", "optimizer"]
    roles = [re.search(r"You are (?:the )?(\w+)", heard.words) for heard in requests[:number]]
    assert [role[1] for role in roles if role] == ["classifier", "planner", *rounds, *rounds[1:], "critic"]
    assert "critic: reject (0.95): it removes what is to be read" in requests[7].words
    assert [repair["diagnosis"] for repair in told["healing"]] == ["there is no such file"]
    assert (told["tasks"][0]["command"], len(told["votes"])) == ("cat kept.txt", 5)
    for heard in requests[number : number + 2]:
        assert "read the file" in heard.between("what became of them, as JSON:\n", "\n\nEarlier decisions")
        assert "succeeded" in heard.words


# a workflow


@pytest.mark.covers("W27", "W38", "W50")
def test_a_coder_with_tools_goes_on_with_their_results_and_is_not_told_its_task_again(
    moot: Moot, tmp_path: Path
) -> None:
    def answer(asked: Asked) -> Said:
        heard = Heard(asked)
        if "review_work" in heard.tools:
            return Said("", [("r", "review_work", json.dumps({"improvement_needed": False, "work_summary": "read"}))])
        if any(message["role"] == "tool" for message in asked.body["messages"]):
            return Said("High water is at noon.")
        assert "read_file" in heard.tools
        return Said("", [("c", "read_file", '{"path": "tides.txt"}')])

    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "tides.txt").write_text("high water at noon")
    with loopback_aside(answer) as served:
        ran = moot("run", "coder_reviewer", "read the tides", "--workspace", "w", "--model", model_of(served))
    assert (ran.code, ran.out) == (0, "read\n"), ran.err
    second = heard_by(served)[1]
    assert "high water at noon" in second.last
    assert second.words.count("Carry out this task: read the tides") == 1


@pytest.mark.covers("W9", "W47", "W60")
def test_a_context_is_trimmed_to_its_length_and_begins_with_what_it_starts_with(moot: Moot, tmp_path: Path) -> None:
    again = {"target": "code", "condition": "common_data.n < 5", "before": "() => { this.common_data.n += 1; }"}
    end = {"target": "stop", "condition": "true"}
    states = [
        {"name": "start", "transition": [{"target": "code", "condition": "true"}]},
        {"name": "code", "agent": "coder", "input": "'word ' + common_data.n", "transition": [again, end]},
        {"name": "stop", "input": "last_agent_response"},
    ]
    talk = {"name": "talk", "starting_messages": [{"role": "system", "content": "Be brief."}], "max_length": 60}
    plain = {
        "workflow_name": "brief",
        "description": "d",
        "input": {"name": "task", "type": "string", "description": "t"},
        "output": {"name": "said", "type": "string", "description": "o"},
        "variables": {"n": 0},
        "contexts": [talk],
        "agents": [{"agent_role": "coder", "context": "talk", "role": "assistant"}],
        "states": states,
    }
    (tmp_path / "brief.json").write_text(json.dumps(plain))
    with loopback_aside(Said("twenty characters!!!")) as served:
        ran = moot("run", "brief.json", "x", "--model", model_of(served))
        assert ran.code == 0, ran.err
    told = [[message["content"] for message in asked.body["messages"]] for asked in served.asked]
    assert len(told) == 6
    assert all(first.endswith("Be brief.") for first, *_ in told)
    assert told[1][1:] == ["word 0", "twenty characters!!!", "word 1"]
    assert told[-1][1:] == ["word 4", "twenty characters!!!", "word 5"]


# the pipeline


@pytest.mark.covers("P5", "P8", "P13")
def test_a_pipeline_plans_anew_refines_and_ends_by_what_its_requests_tell(moot: Moot) -> None:
    def answer(asked: Asked) -> Said:
        heard = Heard(asked)
        if "You are the planner" in heard.words:
            return heard.reply(summary="A haiku.", steps=["count"] if "has no steps" in heard.words else [])
        if "You are the implementer" in heard.words:
            return Said("Five seven five." if "no season" in heard.words else "Words.")
        is_good = "Five seven five." in heard.between("Implementation:\n", "Your earlier verdicts")
        return heard.reply(score=8 if is_good else 6, issues=[] if is_good else ["no season"])

    with loopback_aside(answer) as served:
        ran = moot("pipeline", "A haiku", "--model", model_of(served), "--json", "--run-id", "haiku")
    assert ran.code == 0, ran.err
    shown = moot("show", "haiku", "--json").json["entries"]
    states = [entry["to"][0] for entry in shown]
    assert states == [
        *("planning", "validating", "planning", "validating", "implementing"),
        *("judging", "implementing", "judging", "succeeded"),
    ]
    assert "Words." in heard_by(served)[-2].words
