"""What people see and do at the page goes through the one object, and the journal says who did it."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.web.door import BOB, client

HERE = Path(__file__).parent
LETTER, PRIVATE, POEM, ENVELOPE, PARCEL, THRIFTY = (
    f"{HERE / 'machines.py'}:{name}" for name in ("LETTER", "PRIVATE", "POEM", "ENVELOPE", "PARCEL", "THRIFTY")
)


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)


@pytest.fixture
def page(address: str) -> Iterator[TestClient]:
    with client(address) as found:
        yield found


def begin(page: TestClient, machine: str = LETTER, **given: Any) -> str:
    answer = page.post("/api/runs", json={"machine": machine, "input": {"to": "Eve", **given}})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["run"])


def until(page: TestClient, run: str, status: str) -> Any:
    """The run, once it stands so."""
    deadline = time.monotonic() + 20
    while (found := page.get(f"/api/runs/{run}").json())["summary"]["status"] != status:
        assert time.monotonic() < deadline, found["summary"]
    return found


def events(page: TestClient, run: str, **given: Any) -> list[tuple[str, Any]]:
    """What a run that is over tells its watchers, from the beginning or behind an entry."""
    with page.stream("GET", f"/api/runs/{run}/events", **given) as stream:
        frames = "".join(stream.iter_text()).split("\n\n")
    fields = [dict(line.split(": ", 1) for line in frame.splitlines()) for frame in frames if "data: " in frame]
    return [(found["event"], json.loads(found["data"])) for found in fields]


def test_a_run_is_started_waits_in_the_inbox_and_is_approved_by_name(page: TestClient) -> None:
    run = begin(page)
    until(page, run, "waiting")
    [asked] = page.get("/api/inbox").json()
    assert (asked["run"], asked["states"], asked["schema"]) == (run, ["approving"], {"type": "boolean"})
    answer = {"value": True, "question": asked["question"]}
    assert page.post(
        f"/api/runs/{run}/answer", json=answer, headers={"authorization": f"Bearer {BOB.token}"}
    ).is_success
    assert until(page, run, "done")["summary"]["states"] == ["sent"]
    assert page.get("/api/inbox").json() == []
    told = [step for name, step in events(page, run) if name == "step"]
    assert [step["who"] for step in told if step["event"] == "answered"] == ["bob"]
    assert [step["seq"] for step in told] == list(range(len(told)))


def test_a_question_for_one_person_is_answered_by_that_person_alone(page: TestClient) -> None:
    run = begin(page, PRIVATE)
    until(page, run, "waiting")
    assert page.get("/api/inbox?mine=true").json() == []
    refused = page.post(f"/api/runs/{run}/answer", json={"value": True})
    assert refused.status_code == 409
    assert "is for bob" in refused.json()["error"]
    bob = {"authorization": f"Bearer {BOB.token}"}
    assert len(page.get("/api/inbox?mine=true", headers=bob).json()) == 1
    assert page.post(f"/api/runs/{run}/answer", json={"value": True}, headers=bob).is_success


def test_an_answer_cannot_be_told_as_an_event_under_another_name(page: TestClient) -> None:
    run = begin(page, PRIVATE)
    until(page, run, "waiting")
    forged = {"event": "answered", "data": {"value": True, "by": "bob"}}
    refused = page.post(f"/api/runs/{run}/send", json=forged)
    assert refused.status_code == 409
    assert "moot answer" in refused.json()["error"]
    assert until(page, run, "waiting")["summary"]["seq"] == 0


def test_what_is_typed_to_a_team_is_kept_with_the_name_of_who_typed_it(page: TestClient) -> None:
    run = str(page.post("/api/runs", json={"machine": "team", "input": {}}).json()["run"])
    bob = {"authorization": f"Bearer {BOB.token}"}
    assert page.post(f"/api/runs/{run}/type", json={"text": "A game about tides"}).is_success
    until(page, run, "waiting")
    assert page.post(f"/api/runs/{run}/type", json={"text": "!approve"}, headers=bob).is_success
    until(page, run, "waiting")
    told = {"event": "COMMAND.exit", "data": {"text": "", "by": "bob"}}
    assert page.post(f"/api/runs/{run}/send", json=told).is_success
    steps = page.get(f"/api/runs/{run}/steps").json()["steps"]
    typed = [(step["event"], step["who"]) for step in steps if step["event"].split(".")[0] in ("USER_SAID", "COMMAND")]
    assert typed == [("USER_SAID", "ada"), ("COMMAND.approve", "bob"), ("COMMAND.exit", "ada")]
    assert any(step["sentence"].startswith("bob: COMMAND.approve") for step in steps)


def test_the_figures_of_all_runs_have_the_transitions_of_each_machine(page: TestClient) -> None:
    for _ in range(2):
        until(page, begin(page), "waiting")
    [machine] = page.get("/api/metrics").json()["machines"]
    assert (machine["machine"], machine["runs"]) == ("letter", 2)
    assert machine["transitions"] == [{"from": "writing", "to": "approving", "times": 2}]


def test_an_answer_of_the_wrong_shape_is_refused_and_changes_nothing(page: TestClient) -> None:
    run = begin(page)
    until(page, run, "waiting")
    refused = page.post(f"/api/runs/{run}/answer", json={"value": "perhaps"})
    assert refused.status_code == 409
    assert until(page, run, "waiting")["summary"]["seq"] == 1


def test_whoever_comes_back_hears_what_was_missed_and_nothing_twice(page: TestClient) -> None:
    run = begin(page)
    until(page, run, "waiting")
    page.post(f"/api/runs/{run}/answer", json={"value": False})
    until(page, run, "done")
    late = events(page, run, headers={"last-event-id": "0"})
    assert [step["seq"] for name, step in late if name == "step"] == [1, 2]
    assert late[-1] == ("over", {"status": "done"})
    assert [name for name, _ in events(page, run, params={"after": 99}) if name == "step"] == []


def test_a_run_is_seen_as_it_was_at_any_step(page: TestClient) -> None:
    run = begin(page)
    until(page, run, "waiting")
    first, then = (page.get(f"/api/runs/{run}/at/{seq}").json() for seq in (0, 1))
    assert (first["states"], then["states"]) == (["writing"], ["approving"])
    assert first["data"]["text"] == ""
    assert then["data"]["text"].startswith("Dear Eve")
    assert then["visits"] == {"writing": 1, "approving": 1}
    assert page.get(f"/api/runs/{run}/at/77").status_code == 404


def test_a_fork_goes_its_own_way_and_is_compared_with_its_origin(page: TestClient) -> None:
    run = begin(page)
    until(page, run, "waiting")
    page.post(f"/api/runs/{run}/answer", json={"value": False})
    until(page, run, "done")
    forked = page.post(f"/api/runs/{run}/fork", json={"at": 1}).json()["run"]
    until(page, forked, "waiting")
    page.post(f"/api/runs/{forked}/answer", json={"value": True})
    assert until(page, forked, "done")["origin"] == run
    compared = page.get("/api/compare", params={"left": run, "right": forked}).json()
    assert compared["common"] == 2
    assert (compared["left"]["summary"]["states"], compared["right"]["summary"]["states"]) == (["dropped"], ["sent"])
    assert [kin["run"] for kin in page.get(f"/api/runs/{run}").json()["forks"]] == [forked]


def test_a_run_is_cancelled_once_and_says_by_whom(page: TestClient) -> None:
    run = begin(page)
    until(page, run, "waiting")
    assert page.post(f"/api/runs/{run}/cancel", json={"reason": "no need"}).is_success
    assert "no need (ada)" in until(page, run, "cancelled")["summary"]["reason"]
    refused = page.post(f"/api/runs/{run}/cancel", json={})
    assert refused.status_code == 409
    refused = page.post(f"/api/runs/{run}/retry", json={})
    assert refused.status_code == 409


@pytest.mark.unreplayed("the move is mended in between")
def test_a_run_that_failed_is_tried_again_once_it_is_mended(page: TestClient, home: Path) -> None:
    run = begin(page, PARCEL)
    assert "there is no stamp" in until(page, run, "failed")["summary"]["reason"]
    assert page.post(f"/api/runs/{run}/retry", json={}).status_code == 409, "it would fail in the same way"
    assert until(page, run, "failed")["summary"]["seq"] == 1
    (home / "mended").touch()
    assert page.post(f"/api/runs/{run}/retry", json={}).json() == {"run": run}
    mended = until(page, run, "done")["summary"]
    assert (mended["states"], mended["spent"]["calls"]) == (["packed"], 1), "what was answered is not asked again"
    told = [step for name, step in events(page, run) if name == "step"]
    assert [step["seq"] for step in told] == list(range(len(told)))
    assert [step["who"] for step in told if step["event"] == "run.retried"] == ["ada"]


def test_a_run_that_used_up_its_budget_is_tried_again_with_a_larger_one(page: TestClient) -> None:
    run = begin(page, THRIFTY)
    until(page, run, "limited")
    assert page.post(f"/api/runs/{run}/retry", json={}).status_code == 409
    assert page.post(f"/api/runs/{run}/retry", json={"budget": {"calls": 5}}).is_success
    assert until(page, run, "done")["summary"]["limits"] == {"calls": 5}


def test_a_step_tells_its_failed_attempts_and_what_changed_since_the_time_before(page: TestClient) -> None:
    run = begin(page, POEM)
    until(page, run, "done")
    steps = page.get(f"/api/runs/{run}/steps").json()["steps"]
    assert [step["event"] for step in steps[1:]] == ["effect.faltered", "replied"] * 2
    first, asked_again, last = (page.get(f"/api/runs/{run}/steps/{seq}").json()["again"] for seq in (0, 2, 4))
    assert first == {"attempts": [], "differences": []}
    [failed] = asked_again["attempts"]
    assert failed["seq"] == 1
    assert "the ink is dry" in failed["why"]
    assert [(found["what"], found["seq"], found["lines"]) for found in asked_again["differences"]] == [
        ("asked", 0, [" to: Eve", "-copies: 1", "+copies: 2"])
    ]
    assert [attempt["seq"] for attempt in last["attempts"]] == [3]
    assert [(found["what"], found["seq"], found["lines"]) for found in last["differences"]] == [
        ("said", 2, [" First line", "-to Eve, version 1", "+to Eve, version 2"])
    ]


def test_a_run_tells_where_its_children_stand(page: TestClient) -> None:
    run = begin(page, ENVELOPE)
    deadline = time.monotonic() + 20
    while not (asked := page.get("/api/inbox").json()):
        assert time.monotonic() < deadline
    [inner] = page.get(f"/api/runs/{run}").json()["children"]
    assert inner == {"run": asked[0]["run"], "machine": "letter", "status": "waiting", "states": ["approving"]}
    page.post(f"/api/runs/{inner['run']}/answer", json={"value": True})
    assert until(page, run, "done")["children"][0]["states"] == ["sent"]


def test_runs_are_found_by_words_status_machine_and_who_is_waited_for(page: TestClient) -> None:
    letter, private = begin(page), begin(page, PRIVATE)
    until(page, letter, "waiting")
    until(page, private, "waiting")
    asked: list[tuple[str, set[str]]] = [
        ("", {letter, private}),
        ("?machine=letter", {letter}),
        ("?status=done", set()),
        ("?search=APPROVING", {letter}),
        ("?mine=true", {letter}),
        (f"?project={HERE}", {letter, private}),
    ]
    for query, expected in asked:
        found = page.get(f"/api/runs{query}").json()
        assert {run["summary"]["run"] for run in found["runs"]} == expected, query
    assert len(page.get("/api/runs?limit=1").json()["runs"]) == 1


def test_only_code_of_the_folder_or_of_the_store_is_loaded(page: TestClient, tmp_path: Path) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text("raise SystemExit")
    for machine in (f"{outside}:X", "../../../../etc/passwd", "os:path", "antigravity:X"):
        assert page.post("/api/runs", json={"machine": machine}).status_code == 409, machine
        assert page.get("/api/form", params={"machine": machine}).status_code == 409, machine
    form = page.get("/api/form", params={"machine": "machines.py:LETTER"}).json()
    assert form["schema"]["required"] == ["to"]


@pytest.mark.parametrize("machine", ["debate", "pipeline", "arena", "team"])
def test_every_machine_that_ships_has_a_short_form(page: TestClient, machine: str) -> None:
    form = page.get("/api/form", params={"machine": machine}).json()
    assert 1 <= len(form["schema"]["properties"]) <= 6


SEAT = {"id": "a", "name": "a", "role": "nobody"}


@pytest.mark.parametrize(
    ("machine", "given", "why"),
    [
        ("debate", {"problem": "Tea?", "panel": "architect, nobody"}, "no role is called 'nobody'"),
        ("debate", {"problem": "Tea?", "configuration": {"agents": [SEAT]}}, "no role is called 'nobody'"),
        ("debate", {"problem": "Tea?", "configuration": {"judge": SEAT}}, "no role is called 'nobody'"),
        ("debate", {"problem": "Tea?", "options": "tea"}, "a choice needs two options"),
        ("debate", {"problem": " "}, "the problem is empty"),
        ("arena", {"request": "Write a table"}, "no workspace is named"),
        ("arena", "Write a table", "no workspace is named"),
        ("arena", {"request": "Write a table", "workspace": " "}, "no workspace is named"),
    ],
)
def test_what_the_command_refuses_is_refused(page: TestClient, machine: str, given: Any, why: str) -> None:
    answer = page.post("/api/runs", json={"machine": machine, "input": given, "model": "rehearsal"})
    assert answer.status_code in (409, 422), answer.text
    assert why in answer.json()["error"]
    assert page.get("/api/runs").json()["total"] == 0


def test_what_is_to_be_known_is_told_before_a_run_begins_and_of_the_run(page: TestClient) -> None:
    told = page.post("/api/preview", json={"machine": "pipeline"}).json()
    assert [warning.partition(":")[0] for warning in told["warnings"]] == ["no model is set"]
    assert page.post("/api/preview", json={"machine": "pipeline", "model": "rehearsal"}).json()["warnings"] == []
    folder = page.post("/api/preview", json={"machine": "arena", "input": {"workspace": "docs"}}).json()["folder"]
    assert folder == str(HERE / "docs")
    answer = page.post("/api/runs", json={"machine": "pipeline", "input": {"brief": "A haiku"}})
    detail = page.get(f"/api/runs/{answer.json()['run']}").json()
    assert detail["warnings"] == ["this is a rehearsal: no model was asked, and the replies mean nothing"]


def test_a_broken_file_is_checked_without_being_saved(page: TestClient) -> None:
    found = page.post("/api/check", json={"text": '{"workflow_name": 3}', "name": "mine.json"}).json()
    assert found["is_wrong"]
    assert {finding["place"].partition(":")[0] for finding in found["findings"]} == {"mine.json"}
    assert page.post("/api/check", json={"text": "{}", "name": "../x.json"}).status_code == 409


def test_a_sound_file_is_drawn(page: TestClient) -> None:
    path = HERE.parents[1] / "src/moothall/machines/workflow/shipped"
    text = next(iter(sorted(path.glob("*.json")))).read_text("utf-8")
    found = page.post("/api/check", json={"text": text}).json()
    assert not found["is_wrong"], found["findings"]
    assert found["picture"]["svg"].startswith("<svg")
    assert "<style" not in found["picture"]["svg"]


def test_a_picture_names_states_and_rows_so_that_a_page_can_light_them(page: TestClient) -> None:
    run = begin(page)
    until(page, run, "waiting")
    drawn = page.get(f"/api/runs/{run}/picture").json()
    figures = page.get(f"/api/runs/{run}/figures").json()
    assert 'data-state="approving"' in drawn["svg"]
    assert list(figures["taken"]) == ["writing/0"]
    assert 'data-rows="[&quot;writing/0&quot;]"' in drawn["svg"]
    assert drawn["around"] == {"writing": [], "approving": [], "sent": [], "dropped": []}


LOOKER = """
import json, sys
from tests.web.door import client

store, run = sys.argv[1:]
with client(store, read_only=True) as page:
    found = page.get(f"/api/runs/{run}").json()
    picture = page.get(f"/api/runs/{run}/picture").status_code
    print(json.dumps([found["summary"]["status"], found["problem"], picture]))
"""
"""Looks at a run in a process that has not loaded its code before."""


def test_who_only_reads_loads_no_code(address: str) -> None:
    with client(address) as page:
        run = begin(page)
        until(page, run, "waiting")
    answers = subprocess.run(
        [sys.executable, "-c", LOOKER, address, run], cwd=HERE.parents[1], capture_output=True, text=True, timeout=60
    )
    assert answers.returncode == 0, answers.stderr
    status, problem, picture = json.loads(answers.stdout)
    assert (status, picture) == ("waiting", 422)
    assert "not loaded unless you name it" in problem


def test_secrets_are_shown_to_nobody(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with client(address) as page:
        run = begin(page, to="tulips-and-daffodils-4711")
        until(page, run, "waiting")
    monkeypatch.setenv("FLOWER_TOKEN", "tulips-and-daffodils-4711")
    monkeypatch.setenv("MOOTHALL_SECRETS", "FLOWER_TOKEN")
    with client(address) as page:
        for path in ("", "/steps", "/steps/0", "/at/1", "/export", "/figures"):
            text = page.get(f"/api/runs/{run}{path}").text
            assert "daffodils" not in text, path
        assert "daffodils" not in page.get("/api/inbox").text
        page.post(f"/api/runs/{run}/answer", json={"value": True})
        until(page, run, "done")
        told = events(page, run)
        assert len(told) >= 4
        assert "daffodils" not in json.dumps(told)
