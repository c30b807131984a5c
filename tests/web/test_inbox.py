"""Questions in a browser: a click answers what the person saw, every field can be given, and nothing moves."""

from typing import Any

import pytest

from tests.web.browser import Server, begin, started

pytestmark = [pytest.mark.slow, pytest.mark.unreplayed("the runs are of another process")]
MOMENT = 600
"""Milliseconds after which a question that has come or moved can be clicked."""
LOOK = 2_000
"""Milliseconds after which the page looks again for what waits."""


def ask(server: Server, run: str, machine: str = "LETTER") -> None:
    assert started(server, "run", f"machines.py:{machine}", "Eve", "--run-id", run).returncode == 5


def open_inbox(page: Any, server: Server) -> None:
    """The inbox with a clock that moves when the test says so."""
    page.clock.install()
    page.goto(f"{server.url}/inbox")
    page.wait_for_selector(".question")
    page.clock.run_for(MOMENT)


def card(page: Any, run: str) -> Any:
    return page.get_by_role("article").filter(has=page.get_by_role("link", name=run, exact=True))


def middle_of(found: Any) -> tuple[float, float]:
    box = found.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def status_of(page: Any, run: str) -> str:
    path = f"/api/runs/{run}"
    return str(page.evaluate("path => fetch(path).then(found => found.json()).then(run => run.summary.status)", path))


def test_a_second_click_in_the_same_place_answers_no_other_question(page: Any, server: Server) -> None:
    ask(server, "first")
    ask(server, "second")
    open_inbox(page, server)
    place = middle_of(card(page, "first").get_by_role("button", name="Approve"))
    below = card(page, "second").bounding_box()
    page.mouse.click(*place)
    page.wait_for_selector("text=Answered: Approve")
    page.clock.run_for(LOOK)
    page.wait_for_selector(".count:has-text('1')")
    assert card(page, "second").bounding_box() == below
    page.mouse.click(*place)
    page.clock.run_for(LOOK)
    page.mouse.click(*place)
    assert card(page, "second").get_by_role("button", name="Approve").count() == 1
    assert status_of(page, "first") == "done"
    assert status_of(page, "second") == "waiting"


def test_a_question_that_comes_moves_no_other_and_takes_no_click_for_a_moment(page: Any, server: Server) -> None:
    ask(server, "first")
    open_inbox(page, server)
    before = card(page, "first").bounding_box()
    ask(server, "second")
    page.clock.run_for(LOOK)
    page.wait_for_selector("article >> text=second")
    assert card(page, "first").bounding_box() == before
    place = middle_of(card(page, "second").get_by_role("button", name="Approve"))
    page.mouse.click(*place)
    assert status_of(page, "second") == "waiting"
    page.clock.run_for(MOMENT)
    page.mouse.click(*place)
    page.wait_for_selector("text=Answered: Approve")
    assert status_of(page, "second") == "done"


def test_a_question_that_was_pushed_down_takes_no_click_for_a_moment(page: Any, server: Server) -> None:
    ask(server, "first")
    ask(server, "second")
    open_inbox(page, server)
    page.evaluate("document.querySelector('.question').style.paddingBottom = '90px'")
    button = card(page, "second").get_by_role("button", name="Approve")
    page.wait_for_selector(".settling")
    page.mouse.click(*middle_of(button))
    assert status_of(page, "second") == "waiting"
    page.clock.run_for(MOMENT)
    page.mouse.click(*middle_of(button))
    page.wait_for_selector("text=Answered: Approve")
    assert status_of(page, "second") == "done"


def test_a_question_that_was_answered_elsewhere_keeps_its_place(page: Any, server: Server) -> None:
    ask(server, "first")
    ask(server, "second")
    open_inbox(page, server)
    below = card(page, "second").bounding_box()
    assert started(server, "answer", "first", "--yes").returncode == 0
    page.clock.run_for(LOOK)
    page.wait_for_selector("text=This is no longer asked")
    assert card(page, "second").bounding_box() == below
    page.get_by_role("button", name="Hide what is answered").click()
    assert card(page, "first").count() == 0
    assert card(page, "second").count() == 1


def test_after_an_answer_the_keyboard_is_at_the_next_question(page: Any, server: Server) -> None:
    ask(server, "first")
    ask(server, "second")
    open_inbox(page, server)
    card(page, "first").get_by_role("button", name="Approve").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Answered: Approve")
    focused = "document.activeElement.dataset.question"
    page.wait_for_function(f"{focused} && {focused}.startsWith('second ')")
    page.keyboard.press("Enter")
    assert status_of(page, "second") == "waiting"


def test_the_next_question_of_a_run_does_not_take_the_place_of_the_one_before(page: Any, server: Server) -> None:
    begin(page, server, "machines.py:TWICE", To="Eve")
    button = page.get_by_role("article").filter(has_text="First?").get_by_role("button", name="Approve")
    page.wait_for_selector(".question:not(.settling)")
    place = middle_of(button)
    page.mouse.click(*place)
    page.wait_for_selector("text=Second?")
    page.wait_for_selector(".question:not(.settling) >> text=Second?")
    page.mouse.click(*place)
    assert page.get_by_role("article").filter(has_text="Second?").get_by_role("button", name="Approve").count() == 1
    page.get_by_role("button", name="Approve").click()
    page.wait_for_selector(".badge.done")


def test_cancelling_a_run_asks_first(page: Any, server: Server) -> None:
    run = begin(page, server, "machines.py:LETTER", To="Eve")
    page.wait_for_selector(".badge.waiting")
    page.get_by_role("button", name="Cancel", exact=True).dblclick()
    dialog = page.get_by_role("dialog", name="Cancel this run?")
    dialog.get_by_role("button", name="Keep it").click()
    assert status_of(page, run) == "waiting"
    page.get_by_role("button", name="Cancel", exact=True).click()
    dialog.wait_for()
    page.keyboard.press("Escape")
    dialog.wait_for(state="detached")
    assert status_of(page, run) == "waiting"
    page.get_by_role("button", name="Cancel", exact=True).click()
    dialog.get_by_role("button", name="Cancel the run").click()
    page.wait_for_selector(".badge.cancelled")


def test_no_can_be_given_in_a_form_and_every_field_of_a_question_is_in_sight(page: Any, server: Server) -> None:
    begin(page, server, "machines.py:VERDICT", To="Eve")
    question = page.get_by_role("article").filter(has_text="Is the letter to Eve good?")
    approved = question.get_by_role("group", name="Approved")
    approved.wait_for()
    assert approved.get_by_role("radio", checked=True).count() == 0
    for field in (approved, question.get_by_label("Reason"), question.get_by_label("Notes")):
        assert field.is_visible()
    question.get_by_role("button", name="Send answer").click()
    assert question.count() == 1, "a yes or a no is needed"
    approved.get_by_label("No").check()
    question.get_by_label("Reason").fill("too long")
    question.get_by_role("button", name="Send answer").click()
    page.wait_for_selector(".badge.done")
    page.wait_for_selector("text=Verdict(approved=False, reason='too long', urgent=None, notes=())")


@pytest.mark.parametrize(("typed", "given"), [("3", "3"), ("no paper", "'no paper'")])
def test_an_answer_of_several_types_is_read_as_at_the_terminal(
    page: Any, server: Server, typed: str, given: str
) -> None:
    begin(page, server, "machines.py:COUNT", To="Eve")
    page.get_by_role("article").get_by_label("Answer").fill(typed)
    page.get_by_role("button", name="Send answer").click()
    page.wait_for_selector(f".result >> text=/^{given}$/")
