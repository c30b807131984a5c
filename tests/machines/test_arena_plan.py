"""Plans and replies of the arena: decoding, order, repair, and when two failures are the same."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moothall.arena import Plan, Task, decode_plan
from moothall.errors import BadValue
from moothall.machines.arena.plan import (
    AGENTS,
    Expectation,
    checks_touched,
    decode_classification,
    decode_diagnosis,
    decode_opinion,
    failed_expectations,
    is_same_failure,
    normalised_failure,
    readable_failure,
    ready_tasks,
    reverse_tasks,
    tasks_for_a_person,
)


def command(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "kind": "command", "command": f"run {name}", **more}


@pytest.mark.covers("A7")
def test_a_plan_of_every_kind_is_decoded() -> None:
    plan = decode_plan(
        {
            "tasks": [
                command("a", expect={"exit_code": 0, "stdout_contains": "ok", "file_exists": "x"}),
                {"id": "b", "kind": "edit", "path": "x", "content": "", "needs": ["a"], "reverse": "irreversible"},
                {"id": "c", "kind": "tool", "tool": "t", "arguments": {"n": 1}, "effect": "idempotent"},
                {"id": "d", "kind": "model", "prompt": "p", "reverse": {"kind": "command", "command": "undo"}},
            ]
        }
    )
    assert [task.kind for task in plan.tasks] == ["command", "edit", "tool", "model"]
    assert plan.task("a").expect == Expectation(0, "ok", "x")
    assert [task.effect for task in plan.tasks] == ["at-most-once", "idempotent", "idempotent", "pure"]
    assert [task.id for task in tasks_for_a_person(plan)] == ["b"]
    assert [(name, task and task.command) for name, task in reverse_tasks(plan, performed=["a", "d"])] == [
        ("d", "undo"),
        ("a", None),
    ]


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ([], "no list of tasks"),
        ({"tasks": {}}, "no list of tasks"),
        ({"tasks": ["x"]}, "task 1 is str"),
        ({"tasks": [{"kind": "command", "command": "x"}]}, "task 1 has no id"),
        ({"tasks": [{"id": "a", "kind": "dance"}]}, "task 'a' has the kind 'dance'"),
        ({"tasks": [{"id": "a", "kind": "command"}]}, "needs 'command'"),
        ({"tasks": [{"id": "a", "kind": "edit", "path": "x"}]}, "needs 'content'"),
        ({"tasks": [command("a"), command("a")]}, "two tasks have the id 'a'"),
        ({"tasks": [command("a", needs=["z"])]}, "needs 'z', which is not in the plan"),
        ({"tasks": [command("a", needs=["a"])]}, "needs itself"),
        ({"tasks": [command("a", needs=["b"]), command("b", needs=["a"])]}, "a, b need each other in a circle"),
        ({"tasks": [command("a", needs="b")]}, "not a list of texts"),
        ({"tasks": [command("a", expect={"exitcode": 0})]}, "unknown 'exitcode'"),
        ({"tasks": [command("a", expect={"exit_code": True})]}, "exit code True"),
        ({"tasks": [command("a", expect={"file_exists": 3})]}, "file_exists 3"),
        ({"tasks": [command("a", reverse="never")]}, "neither a task nor"),
        ({"tasks": [command("a", reverse=command("b", reverse=command("c")))]}, "a reverse of its own"),
        ({"tasks": [command("a", effect="twice")]}, "effect 'twice'"),
        ({"tasks": [command("a", arguments=[])]}, "arguments of task 'a'"),
        ({"tasks": [command("a", sudo=True)]}, "unknown field 'sudo'"),
    ],
)
def test_what_is_wrong_with_a_plan_is_said(reply: Any, said: str) -> None:
    with pytest.raises(BadValue, match=said):
        decode_plan(reply)


@pytest.mark.covers("A16")
def test_independent_tasks_run_together() -> None:
    plan = decode_plan(
        {"tasks": [command("a"), command("b"), command("c", needs=["a", "b"]), command("d", needs=["a"])]}
    )
    assert [task.id for task in ready_tasks(plan, done=[])] == ["a", "b"]
    assert [task.id for task in ready_tasks(plan, done=["a"], started=["b"])] == ["d"]


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=20))
def test_every_plan_without_a_circle_is_run_to_its_end(needs: list[tuple[int, int]]) -> None:
    tasks = [command(str(n), needs=sorted({str(low) for high, low in needs if high == n > low})) for n in range(10)]
    plan, order = decode_plan({"tasks": tasks}), list[str]()
    while ready := ready_tasks(plan, done=order):
        order += [task.id for task in ready]
    assert sorted(order) == sorted(str(n) for n in range(10))
    assert all(order.index(need) < order.index(task["id"]) for task in tasks for need in task["needs"])


def read_reply(agent: str, reply: Any) -> Any:
    """A reply of an agent, read as the machine reads it."""
    if agent == "classifier":
        return decode_classification(reply)
    return decode_plan(reply) if agent == "planner" else decode_opinion(reply, role=agent)


@pytest.mark.covers("A6", "A8")
def test_every_agent_has_its_reply() -> None:
    opinion = {"verdict": "reject", "confidence": 0.5, "reasons": ["why"]}
    replies: dict[str, Any] = {
        "classifier": {"kind": "code", "tags": ["x"], "confidence": 1},
        "planner": {"tasks": [command("a")]},
        **dict.fromkeys(("analyst", "critic", "security", "optimizer"), opinion),
        "solution": {**opinion, "plan": {"tasks": []}},
    }
    read = {name: read_reply(name, replies[name]) for name in AGENTS}
    assert {name: type(value).__name__ for name, value in read.items()} == {
        "classifier": "Classification",
        "planner": "Plan",
        **dict.fromkeys(("analyst", "solution", "critic", "security", "optimizer"), "Opinion"),
    }


@pytest.mark.parametrize(
    ("agent", "reply", "said"),
    [
        ("classifier", {"confidence": 1}, "names no kind"),
        ("classifier", {"kind": "x", "tags": "y", "confidence": 1}, "tags"),
        ("classifier", {"kind": "x"}, "confidence"),
        ("critic", {"verdict": "maybe", "confidence": 1}, "verdict 'maybe'"),
        ("critic", {"verdict": "approve", "confidence": 2}, "confidence"),
        ("critic", {"verdict": "approve", "confidence": 1, "plan": {"tasks": []}}, "only the solution"),
        ("critic", "approve", "replies str"),
    ],
)
def test_what_is_wrong_with_a_reply_is_said(agent: str, reply: Any, said: str) -> None:
    with pytest.raises(BadValue, match=said):
        read_reply(agent, reply)


@pytest.mark.covers("A20", "A21")
@pytest.mark.parametrize(
    ("reply", "can_tell"),
    [
        ({"diagnosis": "typo", "plan": {"tasks": [command("a")]}}, True),
        ({"diagnosis": "typo", "plan": {"tasks": [command("b", needs=["a"])]}}, True),
        ({"diagnosis": " ", "plan": {"tasks": [command("a")]}}, False),
        ({"diagnosis": "typo"}, False),
        ({"diagnosis": "typo", "plan": None}, False),
        ({"diagnosis": "typo", "plan": {"tasks": []}}, False),
        ({}, False),
    ],
)
def test_a_critic_without_diagnosis_or_plan_cannot_tell(reply: Any, can_tell: bool) -> None:
    assert decode_diagnosis(reply, known=["a"]).can_tell == can_tell


@pytest.mark.parametrize(
    ("before", "after", "touched"),
    [
        ({"exit_code": 0}, {"exit_code": 0}, False),
        ({"exit_code": 0}, {}, True),
        ({"stdout_contains": "5 passed"}, {"stdout_contains": "passed"}, True),
        ({"file_exists": "a"}, {"file_exists": "b"}, True),
        ({}, {"file_exists": "b"}, False),
    ],
)
def test_a_repair_may_add_checks_but_not_touch_them(before: Any, after: Any, touched: bool) -> None:
    old, new = (decode_plan({"tasks": [command("a", expect=expect), command("b")]}) for expect in (before, after))
    assert checks_touched(old, new) == (("a",) if touched else ())
    assert checks_touched(old, Plan((Task("c", "command", command="x"),))) == ()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("failed after 3.2s at 2026-11-16T10:00:01Z", "failed after 41ms at 2026-11-17 08:15"),
        ("no file /tmp/a1/x.py", "no file /var/b/y.py"),
        ("src/app.py:12: error", "lib/other.py:99: error"),
        ("object at 0x7f3a", "object at 0xdeadbeef"),
        ("cannot reach http://127.0.0.1:8000/x", "cannot reach https://example.com/y"),
        ("cannot reach 10.0.0.1:80", "cannot reach 10.0.0.2:443"),
        ("commit 3f2a91c0 is bad", "commit a81b2c3d4e5f is bad"),
        ("\x1b[31mFAILED\x1b[0m  test", "failed test"),
    ],
)
def test_failures_that_differ_in_numbers_places_and_times_are_the_same(first: str, second: str) -> None:
    assert is_same_failure(first, second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("NameError: x", "TypeError: x"),
        ("no such table users", "no such table orders"),
        ("", "failed"),
        ("the exit code is 3", "the exit code is 4"),
        ("the exit code is 1", "the exit code is 12"),
    ],
)
def test_failures_that_say_something_else_are_not_the_same(first: str, second: str) -> None:
    assert not is_same_failure(first, second)


@settings(deadline=None)
@given(st.text(max_size=80))
def test_a_normalised_failure_stays_as_it_is(text: str) -> None:
    once = normalised_failure(text)
    assert not any(sign in "0123456789" for sign in once)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("failed after 3.2s at 2026-11-16T10:00:01Z", "failed after <time> at <time>"),
        ("[10:00:01] \x1b[31mFAILED\x1b[0m", "[<time>] FAILED"),
        ("object at 0x7f3a", "object at <address>"),
        ("cannot reach 10.0.0.1:80", "cannot reach <address>"),
        ('File "/srv/shop/src/app.py", line 12', 'File "./src/app.py", line 12'),
        ("cd: /srv/shop: no; /srv/shop-2/x stays", "cd: .: no; /srv/shop-2/x stays"),
        ('File "/tmp/build-a1/pkg/setup.py", line 3', 'File "<path>/setup.py", line 3'),
        ("no folder /tmp/tmpab12cd34", "no folder <path>"),
        ("src/app.py:12:34: error: expected 3, got 4", "src/app.py:12:34: error: expected 3, got 4"),
        ("worker pid 4711 died, process 99 too, PID=7", "worker pid <number> died, process <number> too, PID=<number>"),
        ("cron[4711]: no; ==4711== Invalid read", "cron[<number>]: no; ==<number>== Invalid read"),
        ("bash: line 1:  4711 Killed   make", "bash: line 1: <number> Killed   make"),
        ("the exit code is 3", "the exit code is 3"),
    ],
)
def test_whoever_looks_for_a_cause_reads_lines_and_numbers_but_nothing_that_changes_by_chance(
    said: str, told: str
) -> None:
    assert readable_failure(said, "/srv/shop") == told


@pytest.mark.covers("A18", "A19")
@pytest.mark.parametrize(
    ("expect", "exit_code", "stdout", "wrong"),
    [
        (Expectation(), 0, "", 0),
        (Expectation(stdout_contains="ok"), 1, "ok", 1),
        (Expectation(exit_code=3), 3, "", 1),
        (Expectation(exit_code=3), 0, "", 1),
        (Expectation(stdout_contains="ok", file_exists="a"), 0, "no", 2),
        (Expectation(stdout_contains="ok", file_exists="b"), 0, "ok", 0),
    ],
)
def test_an_exit_code_other_than_0_fails_even_where_the_outcome_holds(
    expect: Expectation, exit_code: int, stdout: str, wrong: int
) -> None:
    assert len(failed_expectations(expect, exit_code=exit_code, stdout=stdout, files=["b"])) == wrong
