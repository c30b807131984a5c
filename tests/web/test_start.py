"""Starting runs on the page: it refuses what the command refuses, and tells first what the command warns of."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.models.loopback import Asked, Said, loopback_aside
from tests.web.browser import Server, started

pytestmark = [pytest.mark.slow, pytest.mark.unreplayed("the runs are of another process")]


def runs_of(page: Any) -> list[Any]:
    found = page.evaluate("fetch('/api/runs').then(found => found.json())")
    return [listed["summary"] for listed in found["runs"]]


def start(page: Any) -> None:
    page.get_by_role("button", name="Start", exact=True).click()


def test_a_debate_with_an_unknown_role_is_refused_as_the_command_refuses_it(page: Any, server: Server) -> None:
    said = started(server, "debate", "Tea?", "--agents", "architect,nobody", "--model", "rehearsal").stderr.strip()
    refusal = said.removeprefix("moot debate: ")
    assert refusal.startswith("no role is called 'nobody'")
    with loopback_aside(Said("Tea.")) as provider:
        page.goto(f"{server.url}/start?machine=debate")
        page.get_by_label("Problem").fill("Tea?")
        page.get_by_label("Panel").fill("architect, nobody")
        page.get_by_text("Model and budget").click()
        page.get_by_label("Model", exact=True).fill(f"openai:panel@{provider.address}")
        start(page)
        page.wait_for_selector("[role=alert]")
        assert page.get_by_role("alert").text_content() == refusal
        assert provider.asked == []
        assert runs_of(page) == []


def test_what_the_command_warns_of_is_shown_before_the_start_and_on_the_run(page: Any, server: Server) -> None:
    order = ("debate", "Tea?", "--agents", "architect,kiss", "--rounds", "1", "--run-id", "at-the-terminal")
    [warning] = [line for line in started(server, *order).stderr.splitlines() if line.startswith("no model is set")]
    page.goto(f"{server.url}/start?machine=debate")
    page.get_by_label("Problem").fill("Tea?")
    page.get_by_label("Panel").fill("architect, kiss")
    page.get_by_label("Rounds").fill("1")
    assert page.locator(".warnings li").all_text_contents() == [warning]
    start(page)
    page.wait_for_selector(".badge.done.rehearsal")
    page.wait_for_selector("text=this is a rehearsal: no model was asked, and the replies mean nothing")
    page.wait_for_selector(".result.rehearsal")
    colours = page.evaluate(
        """() => {
            const green = document.createElement("i");
            green.style.color = "var(--green)";
            document.body.append(green);
            const colour = (part, name) => getComputedStyle(document.querySelector(part))[name];
            return [getComputedStyle(green).color, colour(".badge", "color"), colour(".result", "borderLeftColor")];
        }"""
    )
    assert colours[0] not in colours[1:]
    page.goto(f"{server.url}/runs")
    page.wait_for_selector(".row .chip:has-text('rehearsal')")


def test_a_price_that_nobody_knows_is_told_before_the_start_and_on_the_run(page: Any, server: Server) -> None:
    def reply(asked: Asked) -> Said:
        assert asked.body["model"] == "unheard-of"
        return Said(json.dumps({"content": "Hello.", "transition": "CONTINUE"}))

    with loopback_aside(reply) as provider:
        page.goto(f"{server.url}/start?machine=team")
        page.get_by_text("Model and budget").click()
        page.get_by_label("Model", exact=True).fill(f"openai:unheard-of@{provider.address}")
        page.get_by_label("At most, in dollars").fill("0.5")
        page.wait_for_selector(".warnings >> text=is not known: what it costs does not count towards the budget")
        start(page)
        page.wait_for_url("**/run/**")
        page.wait_for_selector(".warnings >> text=is not known: what it costs does not count towards the budget")


def test_a_warning_that_was_not_shown_yet_stops_the_start(page: Any, server: Server) -> None:
    page.clock.install()
    page.goto(f"{server.url}/start?machine=team")
    page.get_by_text("Model and budget").click()
    page.get_by_label("Model", exact=True).fill("openai:unheard-of@http://127.0.0.1:9/v1")
    page.get_by_label("At most, in dollars").fill("0.5")
    start(page)
    page.wait_for_selector(".warnings >> text=does not count towards the budget")
    assert runs_of(page) == []
    start(page)
    page.wait_for_url("**/run/**")


def test_the_arena_names_the_folder_that_it_works_in_and_has_it_confirmed(
    page: Any, server: Server, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    page.goto(f"{server.url}/start?machine=arena")
    page.get_by_label("Request").fill("Write the tide table")
    start(page)
    assert page.get_by_label("Workspace").evaluate("field => field.validity.valueMissing")
    page.get_by_label("Workspace").fill(str(folder / ".." / "project"))
    page.get_by_label(f"Work in {folder}").wait_for()
    start(page)
    assert runs_of(page) == []
    page.get_by_label(f"Work in {folder}").check()
    page.get_by_label("Workspace").fill(str(tmp_path))
    confirmed = page.get_by_label(f"Work in {tmp_path}:")
    confirmed.wait_for()
    assert not confirmed.is_checked(), "another folder is confirmed anew"
    page.get_by_label("Workspace").fill(str(folder))
    page.get_by_label(f"Work in {folder}").check()
    start(page)
    page.wait_for_url("**/run/**")
    run = page.url.rsplit("/", 1)[1].partition("#")[0]
    path = f"/api/runs/{run}/at/0"
    moment = page.evaluate("path => fetch(path).then(found => found.json())", path)
    assert moment["data"]["workspace"] == str(folder)


def test_a_conversation_names_the_folder_that_files_are_written_into(page: Any, server: Server) -> None:
    page.goto(f"{server.url}/start?machine=team")
    page.wait_for_selector(f"text=where files of a plan are written, else {server.cwd / 'workspace'}")


def test_a_result_wears_the_colour_of_how_its_run_ended(page: Any, server: Server, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    examples = Path(__file__).parents[2] / "examples"
    order = ("arena", "Write the tide table", "--run-id", "table", "--yes", "--workspace", f"{tmp_path}/project")
    begun = started(server, *order, "--model", f"scripted:{examples / 'arena_rollback'}.json")
    assert "Traceback" not in begun.stderr
    page.goto(f"{server.url}/run/table")
    page.wait_for_selector(".badge.failed")
    edge = page.locator(".result").evaluate("card => getComputedStyle(card).borderLeftColor")
    badge = page.locator(".badge").evaluate("badge => getComputedStyle(badge).color")
    assert edge == badge
