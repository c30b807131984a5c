"""A debate on the page: bars as long as what they stand for, who abstained, and no answer where there is none."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.models.debaters import PROBLEM, Call, agreeable, closed, debaters
from tests.web.browser import Server, browser, require_browser, serving, started

pytestmark = [pytest.mark.slow, pytest.mark.unreplayed("the runs are of another process")]
SEATS = ("ann", "bob", "cat")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    require_browser()
    with serving(tmp_path / "home", "--user", "ada", cwd=tmp_path) as served:
        yield served


@pytest.fixture
def page(server: Server) -> Iterator[Any]:
    with browser() as chromium:
        page = chromium.new_page()
        page.set_default_timeout(20_000)
        page.goto(server.link)
        yield page


def debated(server: Server, answers: dict[str, str], **debate: Any) -> int:
    """A debate, begun at a terminal, in which everybody gives the same answer every time."""

    def speak(call: Call) -> Any:
        reply = agreeable(call)
        return {"text": "because", "answer": answers[call.seat]} if call.node in ("propose", "refine") else reply

    with debaters(speak) as panel:
        config = panel.configure(str(server.cwd / "c.json"), SEATS, **closed(), **debate)
        return started(server, "debate", PROBLEM, *config, "--run-id", "till").returncode


def test_a_bar_is_as_long_as_the_agreement_and_abstentions_are_named(page: Any, server: Server) -> None:
    assert debated(server, {"ann": "SQLite", "bob": "", "cat": "perhaps SQLite"}, protocol="vote") == 0
    page.goto(f"{server.url}/run/till")
    page.get_by_role("tab", name="debate").click()
    figure = page.locator("figure.bars:has-text('Agreement')")
    assert figure.locator(".bar-told").inner_text() == "33 of 100"
    track, fill = (figure.locator(part).bounding_box()["width"] for part in (".bar-track", ".bar-fill"))
    assert fill / track == pytest.approx(1 / 3, abs=0.02)
    assert page.get_by_text("bob (draft): it gave no answer").count() == 1
    assert page.get_by_text("cat (draft): its answer is not one of").count() == 1


def test_a_closed_debate_without_an_answer_has_failed_on_the_page_too(page: Any, server: Server) -> None:
    assert debated(server, dict.fromkeys(SEATS, ""), protocol="vote") == 1
    page.goto(f"{server.url}/run/till")
    page.wait_for_selector(".badge.failed")
    assert page.get_by_text("No answer: nobody chose an option").count() >= 1
    page.get_by_role("tab", name="debate").click()
    page.wait_for_selector("text=There is none: nobody chose an option")
