"""What waits for approval in a conversation, on the page: the whole reply with its hash, approved or sent back."""

import json
from typing import Any

import pytest

from moothall.machines.team.approvals import digest_of
from moothall.machines.team.definition import AWAIT_APPROVAL, SEND_BACK
from tests.models.loopback import Asked, Loopback, Said, loopback_aside
from tests.web.browser import Server

pytestmark = [pytest.mark.slow, pytest.mark.unreplayed("the runs are of another process")]
CONCEPT = "A game about tides.\nYou build on a shore <b>that drowns</b> twice a day.\n" + "It rains. " * 300


def play(asked: Asked) -> Said:
    """A studio that reads what it is told: work that was sent back is made anew, as the reason says."""
    told = json.dumps(asked.body["messages"])
    content = "A game about clouds." if "REWORK" in told and "less water" in told else CONCEPT
    reply = {"content": content, "transition": "HANDOFF_TO_AGENT", "next_agent": "game_designer"}
    return Said(json.dumps(reply))


def talk(page: Any, server: Server, provider: Loopback) -> str:
    page.goto(f"{server.url}/start?machine=team")
    page.get_by_text("Model and budget").click()
    page.get_by_label("Model", exact=True).fill(f"openai:studio@{provider.address}")
    page.get_by_label("Who approves").select_option("manual")
    page.get_by_role("button", name="Start", exact=True).click()
    page.wait_for_url("**/run/**")
    run = str(page.url.rsplit("/", 1)[1].partition("#")[0])
    page.get_by_label("Say something to the team").fill("Make a game")
    page.get_by_role("button", name="Send", exact=True).click()
    page.wait_for_selector(".question >> text=waits for your approval")
    return run


def entries_of(page: Any, run: str) -> Any:
    path = f"/api/runs/{run}/export"
    return page.evaluate("path => fetch(path).then(found => found.json()).then(run => run.entries)", path)


def waiting(page: Any, run: str) -> Any:
    return page.get_by_role("article").filter(has=page.get_by_role("link", name=run, exact=True))


def test_a_reply_is_shown_whole_with_its_hash_sent_back_for_a_reason_and_approved(page: Any, server: Server) -> None:
    with loopback_aside(play) as provider:
        run = talk(page, server, provider)
        page.goto(f"{server.url}/inbox")
        card = waiting(page, run)
        shown = (card.locator("pre").text_content() or "").splitlines()
        assert [line.removeprefix("  ") for line in shown if line.startswith("  ")] == CONCEPT.splitlines()
        card.get_by_text(f"hash of this: {digest_of(CONCEPT)}").wait_for()
        assert card.get_by_label("Input").count() == 0
        card.get_by_role("button", name="Rework").click()
        assert len(provider.asked) == 1, "rework needs a reason"
        card.get_by_label("What has to change").fill("less water")
        card.get_by_role("button", name="Rework").click()
        page.wait_for_selector("text=Answered: Rework: less water")
        again = waiting(page, run).filter(has_text="A game about clouds.")
        again.get_by_text(f"hash of this: {digest_of('A game about clouds.')}").wait_for()
        again.get_by_role("button", name="Approve").click()
        page.wait_for_selector("text=Answered: Approve")
        answers = [entry["event"] for entry in entries_of(page, run) if entry["event"]["name"] == "answered"]
        assert [(answer["value"], answer["by"]) for answer in answers] == [
            (f"{SEND_BACK} less water", "ada"),
            (True, "ada"),
        ]
        data = page.evaluate("run => fetch(`/api/runs/${run}/export`).then(found => found.json())", run)["head"]
        approvals = data["snapshot"]["data"]["chain"]["approvals"]
        assert [(known["by"], known["digest"]) for known in approvals] == [("user", digest_of("A game about clouds."))]
        assert data["snapshot"]["data"]["reworks"] == 1


def test_what_waits_is_approved_on_the_page_of_the_conversation_too(page: Any, server: Server) -> None:
    with loopback_aside(play) as provider:
        talk(page, server, provider)
        page.get_by_role("article").get_by_role("button", name="Approve").click()
        page.wait_for_selector("text=Answered: Approve")
        page.wait_for_selector(".talk >> text=!approve")


def test_the_page_knows_the_word_that_sends_work_back() -> None:
    from moothall.app.kinds.kind import KINDS

    assert KINDS["team"].approvals == {AWAIT_APPROVAL: SEND_BACK}
