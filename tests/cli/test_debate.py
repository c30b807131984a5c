"""`moot debate`: what it prints and writes, how it asks and goes on, and what other commands make of its runs."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.process import EXAMPLES
from tests.cli.ran import Moot, Ran
from tests.cli.terminal import terminal

SCRIPT = EXAMPLES / "debate.json"
PROBLEM = "Where should the till keep its sales?"
OPTIONS = ("--options", "SQLite,PostgreSQL,Redis")
MODEL = ("--model", f"scripted:{SCRIPT}")
QUESTION = "How many tills write at the same time?"


def debated(moot: Moot, *more: str, run: str = "till") -> Ran:
    return moot("debate", PROBLEM, *OPTIONS, *MODEL, "--run-id", run, *more)


# what is printed


def test_the_solution_goes_to_stdout_and_everything_else_to_stderr(moot: Moot) -> None:
    ran = debated(moot)
    assert ran.code == 0
    assert ran.out.startswith("Answer: SQLite\n\nKeep the sales in SQLite")
    assert "→ Proposal, round 1 of 3 (START, ALL_CLEAR, BEGIN_ROUND, CONTEXTS_READY)\n" in ran.err
    assert "       round 1: agreement 67 of 100, confidence 55 of 100\n" in ran.err
    assert "→ Synthesis (CONSENSUS_REACHED)\n" in ran.err
    assert "Answer" not in ran.err


def test_json_has_the_way_the_votes_and_who_changed_its_mind(moot: Moot) -> None:
    found = debated(moot, "--json").json
    assert {"run_id", "status", "final_state", "states_visited", "events", "rounds", "termination", "protocol"} <= set(
        found
    )
    assert (found["status"], found["rounds"], found["protocol"]) == ("done", 2, "gated")
    assert found["votes"]["counts"] == {"PostgreSQL": 2, "Redis": 1, "SQLite": 6}
    assert [agent["flips"] for agent in found["agents"]] == [1, 2, 0]


def test_whole_texts_are_told_where_that_is_asked_for(moot: Moot) -> None:
    short, whole = debated(moot), debated(moot, "-v", run="whole")
    assert "Who looks after a server in a small shop?" not in short.err
    assert "Who looks after a server in a small shop?" in whole.err


def test_silence_leaves_the_solution(moot: Moot) -> None:
    ran = debated(moot, "-q")
    assert ran.out.startswith("Answer: SQLite")
    assert "→" not in ran.err


# what is written


def test_the_whole_state_is_written_as_json(moot: Moot) -> None:
    debated(moot, "-o", "x.json")
    found = json.loads(Path("x.json").read_text())
    assert found["solution"]["answer"] == "SQLite"
    assert found["state"]["drafts"]["performance"]["answer"] == "Redis"


@pytest.mark.covers("D5")
def test_the_journal_begins_with_problem_configuration_its_hash_and_the_digests_of_files(moot: Moot) -> None:
    Path("docs").mkdir()
    Path("docs/now.txt").write_text("tides")
    for run, rounds in (("till", "2"), ("same", "2"), ("other", "3")):
        debated(moot, "--files", "docs", "-r", rounds, run=run)
    runs = ("till", "same", "other")
    first, same, other = (moot("show", run, "--json").json["entries"][0]["event"]["data"] for run in runs)
    assert (first["problem"], first["configuration"]["debate"]["rounds"]) == (PROBLEM, 2)
    assert [(file["path"], file["sha256"]) for file in first["files"]] == [
        ("now.txt", hashlib.sha256(b"tides").hexdigest())
    ]
    assert first["digest"] == same["digest"] != other["digest"]


def test_a_document_and_a_report_are_written(moot: Moot) -> None:
    ran = debated(moot, "-o", "x.md", "--report", "x.html")
    assert "written: x.md\nwritten: x.html\n" in ran.err
    text, page = Path("x.md").read_text(), Path("x.html").read_text()
    assert text.startswith("# till: done\n\n## The problem\n\nWhere should the till keep its sales?\n\n## The answer\n")
    assert "| performance | 1 | Redis | PostgreSQL | architect |" in text
    assert page.startswith("<!doctype html>")


@pytest.mark.parametrize(("option", "file"), [("-o", "x.txt"), ("--report", "x.doc")])
def test_an_ending_that_nobody_can_write_is_refused_before_anybody_is_asked(moot: Moot, option: str, file: str) -> None:
    ran = debated(moot, option, file)
    assert (ran.code, "write " in ran.err) == (2, True)
    assert moot("ls", "--json").json == []


def test_a_folder_of_files_that_is_not_there_is_refused(moot: Moot) -> None:
    ran = debated(moot, "--files", "docs")
    assert ran.code == 4
    assert "there is no folder docs" in ran.err


# a vote of equal budget


def test_the_vote_of_equal_budget_is_announced_bought_and_told(moot: Moot) -> None:
    ran = debated(moot, "--compare", "--json")
    found = ran.json["compare"]
    assert "17 independent drafts are bought now; 18 calls more" in ran.err
    assert (found["run_id"], found["drafts"]) == ("till-vote", 17)
    assert found["usage"]["calls"] == ran.json["usage"]["calls"] == 18
    report = moot("report", "till", "--format", "md").out
    assert "## Compared with a vote of equal budget\n\n17 independent drafts were bought" in report


def test_a_debate_that_was_a_vote_buys_nothing(moot: Moot) -> None:
    ran = debated(moot, "--protocol", "vote", "--compare")
    assert "nothing is compared: the debate was no longer than a vote" in ran.err
    assert [row["run"] for row in moot("ls", "--json").json] == ["till"]


# questions


@pytest.mark.covers("D14")
def test_all_questions_of_a_round_are_answered_at_once_from_another_process(moot: Moot) -> None:
    ran = debated(moot, "--clarify")
    assert ran.code == 5
    assert f"q1: {QUESTION} (kiss)" in ran.err
    Path("answers.json").write_text(json.dumps({"q1": "NA"}))
    done = moot("answer", "till", "--json", "answers.json", "--json")
    assert done.code == 0
    assert done.json["clarifications"][0]["answer"] == "NA"


@pytest.mark.parametrize("answer", ['{"q1": ""}', '{"q1": " "}', "{}"])
def test_no_answer_is_no_answer_and_the_question_stays(moot: Moot, answer: str) -> None:
    debated(moot, "--clarify")
    assert moot("answer", "till", "--json", answer).code == 1
    assert moot("resume", "till").code == 5


@pytest.mark.parametrize("text", [json.dumps({QUESTION: "one"}), json.dumps([{"text": QUESTION, "answer": "one"}])])
def test_answers_from_a_file_are_taken_where_they_are_asked_for(moot: Moot, text: str) -> None:
    Path("answers.json").write_text(text)
    ran = debated(moot, "--answers", "answers.json", "--json")
    assert (ran.code, ran.json["clarifications"][0]["answer"]) == (0, "one")


@pytest.mark.covers("D14")
def test_the_person_at_the_terminal_is_asked_and_an_empty_line_means_later(tmp_path: Path) -> None:
    begin = ("debate", PROBLEM, *OPTIONS, *MODEL, "--clarify", "--run-id", "till")
    with terminal(*begin, home=tmp_path, keyboard=True) as screen:
        screen.read_until("Enter answers later: ")
        screen.type("\n")
        assert "moot answer till --json FILE" in screen.read_all()
    with terminal("answer", "till", home=tmp_path, keyboard=True) as screen:
        screen.read_until("Enter answers later: ")
        screen.type("one\n")
        assert "till is" in screen.read_all()
    assert screen.process.returncode == 0


def test_a_terminal_shows_the_round_who_thinks_and_what_was_spent(tmp_path: Path) -> None:
    rules = [{**rule, "delay": 0.05} for rule in json.loads(SCRIPT.read_text())["rules"]]
    (tmp_path / "slow.json").write_text(json.dumps({"rules": rules}))
    with terminal("debate", PROBLEM, *OPTIONS, "--model", "scripted:slow.json", home=tmp_path) as screen:
        said = screen.read_all()
    assert "round 1 of 3 · Critique · 0.00078 usd · 3 calls · 390 tokens" in said
    assert "kiss thinks (0 s)" in said
    assert "agreement 67 of 100, confidence 55 of 100 ·" in said


def test_a_person_with_a_seat_is_asked_at_the_terminal_while_the_round_has_a_time(tmp_path: Path) -> None:
    begin = (
        "debate",
        PROBLEM,
        *OPTIONS,
        *MODEL,
        "--protocol",
        "debate",
        "-r",
        "1",
        "--seat",
        "ada",
        "--run-id",
        "till",
    )
    with terminal(*begin, home=tmp_path, keyboard=True) as screen:
        screen.read_until("your answer; Enter answers later: ")
        screen.type("on paper\n")
        screen.read_until("SQLite, PostgreSQL, Redis; Enter answers later: ")
        screen.type("Paper\n")
        screen.read_until("'Paper' is not an answer to this")
        screen.type("Redis\n")
        screen.read_until("Your proposal now")
        screen.type("still on paper\n")
        screen.said, before = "", screen.said
        screen.read_until("SQLite, PostgreSQL, Redis; Enter answers later: ")
        screen.type("SQLite\n")
        assert "till is" in screen.read_all()
    assert screen.process.returncode == 0
    assert (before + screen.said).count("has spoken") == 2


def test_ctrl_c_suspends_and_says_how_to_go_on(tmp_path: Path) -> None:
    rules = [{**rule, "delay": 60} for rule in json.loads(SCRIPT.read_text())["rules"]]
    (tmp_path / "slow.json").write_text(json.dumps({"rules": rules}))
    begin = ("debate", PROBLEM, *OPTIONS, "--model", "scripted:slow.json", "--run-id", "till")
    with terminal(*begin, home=tmp_path, keyboard=True) as screen:
        screen.read_until("kiss thinks")
        screen.process.send_signal(2)
        assert "nothing is lost. Go on with:  moot resume till" in screen.read_all()


# configurations


CONFIG: dict[str, Any] = {
    "agents": [{"id": "architect", "role": "architect"}, {"id": "kiss", "role": "kiss"}],
    "judge": {"id": "judge", "role": "judge"},
    "debate": {"rounds": 2},
}
YAML = """
agents:
  - {id: architect, role: architect}
  - {id: kiss, role: kiss, rol: x}
debate:
  rounds: 2
"""


@pytest.mark.covers("D8")
def test_a_new_configuration_is_right_and_says_how_to_run_it(moot: Moot) -> None:
    made = moot("new", "debate", "panel")
    assert "moot debate -c panel.json 'a problem'" in made.out
    checked = moot("check", "panel.json")
    assert checked.code == 0
    assert checked.out.startswith("panel.json: architect, performance, kiss: 0 errors, 0 warnings\nbounded: at most ")
    assert moot("debate", "-c", "panel.json", PROBLEM, "--model", "rehearsal").code == 0


@pytest.mark.covers("D8")
@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"debate": {"rounds": 0}}, "E_RANGE c.json:17 /debate/rounds: 0 is too small"),
        ({"debate": {"round": 2}}, "W_UNKNOWN_KEY c.json:17 /debate/round: 'round' is not a known key here"),
        ({"agents": []}, "E_NOBODY c.json:2 /agents: no agent is enabled"),
        ({"agents": [{"id": "a", "role": "kis"}]}, "E_ROLE c.json:5 /agents/0/role: no role is called 'kis'"),
        (
            {"debate": {"terminationCondition": {"threshold": 101}}},
            "E_RANGE c.json:18 /debate/terminationCondition/threshold: 101 is too large",
        ),
        (
            {"agents": [{"id": "a", "systemPromptPath": "no.md"}]},
            "E_PROMPT c.json:1 /: the prompt no.md cannot be read",
        ),
    ],
)
def test_a_check_names_every_fault_with_its_line(moot: Moot, change: dict[str, Any], told: str) -> None:
    Path("c.json").write_text(json.dumps({**CONFIG, **change}, indent=1))
    ran = moot("check", "c.json")
    assert told in ran.out
    assert ran.code == (0 if told.startswith("W_") else 4)


@pytest.mark.covers("D8")
def test_a_configuration_may_be_yaml_and_what_nobody_reads_is_told_with_a_guess(moot: Moot) -> None:
    Path("c.yaml").write_text(YAML)
    assert "W_UNKNOWN_KEY c.yaml:4 /agents/1/rol: 'rol' is not a known key here\n      did you mean 'role'?" in (
        moot("check", "c.yaml").out
    )
    ran = moot("debate", "-c", "c.yaml", PROBLEM, "--model", "rehearsal", "--json")
    assert "c.yaml, line 4: /agents/1/rol: 'rol' is not a known key here; did you mean 'role'?" in ran.err
    assert [agent["id"] for agent in ran.json["agents"]] == ["architect", "kiss"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("agents: [", "it is not YAML"),
        ("debate: {rounds: 1}\ndebate: {rounds: 2}", "stands on line 1 and again on line 2"),
        ("debate: {rounds: 2026-01-01}", "which JSON does not have"),
        ("a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\ndebate: {rounds: .inf}", "which JSON does not have"),
        ("\x00", "it is not YAML"),
    ],
)
def test_a_yaml_file_that_two_readers_could_understand_differently_is_refused(moot: Moot, text: str, why: str) -> None:
    Path("c.yaml").write_text(text)
    ran = moot("debate", "-c", "c.yaml", PROBLEM)
    assert (ran.code, why in ran.err) == (4, True), ran.err


@pytest.mark.parametrize(
    ("text", "told"), [("agents: [", "E_YAML c.yaml:1 /: it is not YAML"), (None, "there is no file c.yaml")]
)
def test_a_check_says_what_is_wrong_with_unreadable_yaml(moot: Moot, text: str | None, told: str) -> None:
    if text is not None:
        Path("c.yaml").write_text(text)
    ran = moot("check", "c.yaml")
    assert (ran.code, told in ran.out + ran.err) == (4, True)


def test_a_debate_that_a_limit_ends_gives_the_best_so_far_and_says_so(moot: Moot) -> None:
    ran = debated(moot, "--budget", "calls=3")
    assert ran.code == 7
    assert "ended before its time" in ran.out


def test_a_bomb_of_aliases_is_refused_in_time(moot: Moot) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    Path("c.yaml").write_text("\n".join(lines))
    ran = moot("debate", "-c", "c.yaml", PROBLEM)
    assert (ran.code, "too deep or too large" in ran.err) == (4, True)


def test_a_folder_is_checked_file_by_file_each_as_what_it_is(moot: Moot) -> None:
    Path("files").mkdir()
    Path("files/c.json").write_text(json.dumps(CONFIG))
    moot("new", "workflow", "flow")
    Path("flow.json").rename("files/flow.json")
    ran = moot("check", "files")
    assert ran.code == 0
    assert "files/c.json: architect, kiss: 0 errors" in ran.out
    assert "files/flow.json: flow: 0 errors" in ran.out


def test_a_model_of_the_configuration_plays_where_no_other_is_named(moot: Moot) -> None:
    seats = [{"id": name, "role": name, "model": f"scripted:{SCRIPT}"} for name in ("architect", "performance", "kiss")]
    Path("c.json").write_text(json.dumps({"agents": seats}))
    ran = moot("debate", "-c", "c.json", PROBLEM, *OPTIONS, "--json")
    assert "stands in" not in ran.err
    assert ran.json["solution"]["answer"] == "SQLite"


# reports


def test_the_report_alone_says_why_the_answer_is_what_it_is(moot: Moot) -> None:
    debated(moot)
    text, page = moot("report", "till", "--format", "md").out, moot("report", "till", "--format", "html").out
    for part in (
        "It ended after 2 of at most 3 rounds by agreement of 100 of 100 and the judge's confidence of 92 "
        "(threshold 80).",
        "The confidence of 92 reached the threshold of 80.",
        "Warning: all agents share one model.",
        "3 agents ≈ ",
        "| 1 | 67 | 55 | 0.14 | 2010 | PostgreSQL: 1, SQLite: 2 | nobody | nobody |",
        "| performance | 2 | PostgreSQL | SQLite | architect, kiss |",
        "| kiss | kiss | the run's | took part | 0 | 5 | 960 | 0.00192 |",
        "which were paid for already (nothing was bought), is a tie",
        "## The minority report\n\nPostgreSQL stays the better choice if a second shop opens.",
    ):
        assert part in text, part
    for part in ("<h2>Who moved whom</h2>", "<figcaption>Agreement</figcaption>", "<h2>The machine</h2>", "<svg"):
        assert part in page, part


def test_the_report_of_an_open_debate_measures_who_came_nearer_to_whom(moot: Moot) -> None:
    moot("debate", PROBLEM, *MODEL, "--run-id", "open")
    text = moot("report", "open", "--format", "md").out
    assert "Answers are open, so this is measured by words" in text
    assert "Ranked choice of the agents over the independent drafts, which were paid for already" in text


def test_the_report_of_a_debate_that_waits_says_so(moot: Moot) -> None:
    debated(moot, "--clarify")
    text = moot("report", "till", "--format", "md").out
    assert "There is none: the debate is not over." in text
    assert f"| kiss | {QUESTION} | not answered |" in text


def test_what_anybody_wrote_is_only_text_in_a_report(moot: Moot) -> None:
    moot("debate", "<script>alert(1)</script> | # x", *OPTIONS, *MODEL, "--run-id", "till")
    assert "<script>alert" not in moot("report", "till", "--format", "html").out
    assert "<script>" not in moot("report", "till", "--format", "md").out
