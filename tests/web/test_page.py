"""The page in a browser: what people do there, from the first link to a server that dies in the middle."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]

from tests.models.loopback import Said, loopback_aside
from tests.web.browser import Server, begin, lit, started

pytestmark = [pytest.mark.slow, pytest.mark.unreplayed("the runs are of another process")]
HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"


def open_gate(server: Server, *steps: int) -> None:
    for step in steps:
        (server.home / f"gate-{step}").touch()


def glows(page: Any, state: str) -> None:
    page.wait_for_selector(f".moot .active[data-state={state}]")


def test_a_run_is_started_from_a_form_lights_up_and_is_approved_in_the_inbox(page: Any, server: Server) -> None:
    run = begin(page, server, "walk.py:WALK", Place="the summit")
    glows(page, "climbing")
    open_gate(server, 0)
    glows(page, "resting")
    assert lit(page) == ["resting"]
    open_gate(server, 1)
    glows(page, "asking")
    page.get_by_role("link", name="Inbox").click()
    question = page.get_by_role("article").filter(has_text="Go on to the summit?")
    question.get_by_role("button", name="Approve").click()
    page.wait_for_selector("text=Nothing waits for you")
    page.goto(f"{server.url}/run/{run}")
    glows(page, "there")
    page.wait_for_selector("text=ada answered")
    assert page.locator(".badge.done").count() == 1


def test_a_page_whose_server_is_killed_recovers_without_a_gap(page: Any, server: Server) -> None:
    run = begin(page, server, "walk.py:LOOP", Place="x")
    glows(page, "ping")
    open_gate(server, 0, 1, 2)
    page.wait_for_selector(".scene >> nth=3")
    server.kill()
    page.wait_for_selector("text=connection lost")
    server.start()
    open_gate(server, *range(60))
    page.wait_for_selector(".badge.done")
    seen = page.eval_on_selector_all(".scene[id]", "found => found.map(one => Number(one.id.slice(5)))")
    total = page.evaluate(
        "run => fetch(`/api/runs/${run}/steps`).then(answer => answer.json()).then(body => body.total)", run
    )
    assert seen == list(range(total))
    assert total > 40
    glows(page, "end")


def test_the_past_is_looked_at_forked_and_compared(page: Any, server: Server) -> None:
    open_gate(server, *range(5))
    run = begin(page, server, "walk.py:WALK", Place="x")
    glows(page, "asking")
    page.get_by_role("button", name="Approve").click()
    glows(page, "there")
    page.locator("#travel").fill("0")
    page.wait_for_selector("text=Step 0 of 3")
    glows(page, "climbing")
    assert lit(page) == ["climbing"]
    page.locator("#travel").fill("2")
    glows(page, "asking")
    page.get_by_role("button", name="Fork from here").click()
    page.wait_for_url(lambda url: "/run/" in url and run not in url)
    page.get_by_role("button", name="Reject").click()
    glows(page, "there")
    fork = page.url.rsplit("/", 1)[1].partition("#")[0]
    page.goto(f"{server.url}/compare?left={run}&right={fork}")
    page.wait_for_selector("text=3 steps are alike")


def test_an_unknown_price_is_unknown_and_models_at_addresses_have_their_own_names(page: Any, server: Server) -> None:
    with loopback_aside(Said("Dear Ada")) as one, loopback_aside(Said("Dear Eve")) as other:
        for provider in (one, other):
            asked = ("--model", f"openai:meta/tiny@{provider.address}", "--budget", "usd=0.5")
            ran = started(server, "run", "--role", "coder", "Write", "--run-id", f"at-{provider.port}", *asked)
            assert ran.returncode == 0, ran.stderr
    page.goto(f"{server.url}/run/at-{one.port}")
    facts = page.locator(".facts")
    facts.get_by_text("no price is known for openai:meta/tiny").wait_for()
    assert "unknown" in facts.locator("li", has_text="spent of $0.50").inner_text()
    assert facts.locator(".meter").count() == 0
    assert page.get_by_text("· openai:meta/tiny").count() == 1
    page.goto(f"{server.url}/metrics")
    for provider in (one, other):
        page.get_by_text(f"openai:meta/tiny@127.0.0.1:{provider.port}", exact=True).wait_for()


def test_a_run_that_failed_is_retried_from_the_page(page: Any, server: Server) -> None:
    run = begin(page, server, "machines.py:PARCEL", To="Eve")
    page.wait_for_selector(".badge.failed")
    page.get_by_role("button", name="Retry").click()
    page.wait_for_selector("[role=alert] >> text=there is no stamp")
    (server.home / "mended").touch()
    page.get_by_role("button", name="Retry").click()
    page.wait_for_selector(".badge.done")
    glows(page, "packed")
    page.wait_for_selector("text=The run was tried again")
    assert page.url.partition("#")[0].endswith(run)


def test_a_run_that_used_up_its_budget_gets_a_larger_one_on_the_page(page: Any, server: Server) -> None:
    begin(page, server, "machines.py:THRIFTY", To="Eve")
    page.wait_for_selector(".badge.limited")
    page.get_by_label("At most, calls").fill("7")
    page.get_by_role("button", name="Retry with this").click()
    page.wait_for_selector(".badge.done")
    glows(page, "copied")


def test_a_child_is_drawn_below_its_parent_and_lights_up(page: Any, server: Server) -> None:
    begin(page, server, "machines.py:ENVELOPE", To="Eve")
    glows(page, "filling")
    page.wait_for_selector(".child .active[data-state=approving]")
    page.wait_for_selector("text=It waits for an answer in letter")
    answer = page.evaluate(
        """async () => {
            const [asked] = await (await fetch("/api/inbox")).json();
            const headers = {"content-type": "application/json"};
            const sent = {method: "POST", headers, body: JSON.stringify({value: true})};
            return (await fetch(`/api/runs/${asked.run}/answer`, sent)).status;
        }"""
    )
    assert answer == 200
    page.wait_for_selector(".child .active[data-state=sent]")
    glows(page, "closed")


def test_the_timeline_tells_failed_attempts_and_what_changed_between_two_asks(page: Any, server: Server) -> None:
    begin(page, server, "machines.py:POEM", To="Eve")
    page.wait_for_selector(".badge.done")
    page.get_by_role("tab", name="Timeline").click()
    page.locator("#row-2").click()
    page.wait_for_selector(".detail >> text=the ink is dry")
    page.wait_for_selector(".detail .added:has-text('+copies: 2')")
    page.locator("#row-4").click()
    page.wait_for_selector(".detail >> text=what changed since step 2")
    assert page.locator(".detail .removed").all_text_contents() == ["-to Eve, version 1\n"]


def test_what_is_to_be_approved_is_shown_line_by_line(page: Any, server: Server) -> None:
    begin(page, server, "machines.py:PATCH", To="tides.txt")
    page.wait_for_selector(".question >> text=Apply this to tides.txt?")
    assert page.locator(".question pre").text_content() == "-old line\n+new line\n  kept line\n"
    assert page.locator(".question .removed").count() == page.locator(".question .added").count() == 1


def test_a_debate_is_held_from_the_page(page: Any, server: Server) -> None:
    begin(page, server, "debate", Problem="Tea or coffee?", Options="tea, coffee", Panel="architect, kiss", Rounds="2")
    page.wait_for_selector(".badge.done")
    page.get_by_role("tab", name="debate").click()
    page.wait_for_selector("h2:has-text('The panel')")
    assert page.locator("h2:has-text('The vote')").count() == 1


@pytest.mark.covers("D14")
def test_what_the_panel_of_a_debate_asks_is_answered_on_the_page(page: Any, server: Server) -> None:
    model = f"scripted:{EXAMPLES / 'debate.json'}"
    problem = ("Where should the till keep its sales?", "--options", "SQLite,PostgreSQL,Redis", "--clarify")
    assert started(server, "debate", *problem, "--model", model, "--run-id", "till").returncode == 5
    page.goto(f"{server.url}/run/till")
    question = page.get_by_role("article").filter(has_text="How many tills write at the same time? (kiss)")
    question.get_by_role("textbox").fill("two")
    question.get_by_role("button", name="Send").click()
    page.wait_for_selector(".badge.done")
    told = json.loads(started(server, "resume", "till", "--json").stdout)
    asked = [(known["id"], known["agent"], known["answer"]) for known in told["clarifications"]]
    assert asked == [("q1", "kiss", "two")]


def test_a_team_is_talked_to_from_the_page(page: Any, server: Server) -> None:
    begin(page, server, "team")
    box = page.get_by_label("Say something to the team")
    box.fill("What shall we <b>build</b>?")
    page.get_by_role("button", name="Send").click()
    page.wait_for_selector(".talk >> text=What shall we <b>build</b>?")
    page.wait_for_selector(".talk li:not(.mine)")
    box.fill("!state")
    page.get_by_role("button", name="Send").click()
    page.wait_for_selector("[role=status]:has-text('Current State')")


def test_a_broken_workflow_is_checked_with_its_findings(page: Any, server: Server) -> None:
    page.goto(f"{server.url}/check")
    shipped = sorted((HERE.parents[1] / "src/moothall/machines/workflow/shipped").glob("*.json"))[0].read_text("utf-8")
    page.locator("#source").fill(shipped)
    page.wait_for_selector(".verdict.right")
    page.wait_for_selector(".picture svg .box")
    page.locator("#source").fill(
        shipped.replace('"initial_state"', '"initial_stat"').replace('"start"', '"strat"', 1)[:-20]
    )
    page.wait_for_selector(".verdict.wrong")
    assert page.locator(".findings li").count() >= 1


HIDDEN = """
window.Notification = class {
    static permission = "granted";
    constructor(title, { body }) {
        const told = document.createElement("output");
        told.textContent = `${title}: ${body}`;
        document.body.append(told);
    }
};
Object.defineProperty(document, "hidden", { get: () => true });
"""


def test_a_tab_that_nobody_sees_notifies_of_what_begins_to_wait_for_this_person(page: Any, server: Server) -> None:
    page.add_init_script(HIDDEN)
    page.goto(f"{server.url}/metrics")
    page.wait_for_selector("text=No runs yet")
    assert started(server, "run", "machines.py:PRIVATE", "Eve", "--run-id", "for-bob").returncode == 5
    assert started(server, "run", "machines.py:LETTER", "Eve", "--run-id", "letter-1").returncode == 5
    page.wait_for_selector("body > output")
    assert page.locator("body > output").all_text_contents() == [
        "letter asks: Send this? Dear Eve, <img src=x onerror=alert(1)>"
    ]


def test_injected_html_stays_text(page: Any, server: Server) -> None:
    evil = "<img src=x onerror=document.title='broken'><script>document.title='broken'</script>"
    run = begin(page, server, "machines.py:LETTER", To=evil)
    page.wait_for_selector(".question >> text=onerror=alert(1)")
    for tab in ("timeline", "figures", "data"):
        page.goto(f"{server.url}/run/{run}#{tab}")
        page.wait_for_selector(".run")
    page.goto(f"{server.url}/run/{run}#data")
    page.wait_for_selector("text=onerror=document.title")
    assert page.locator("main img, main script").count() == 0
    assert "broken" not in page.title()


def test_injected_html_in_the_names_of_a_machine_and_its_states_stays_text(page: Any, server: Server) -> None:
    run = begin(page, server, "machines.py:EVIL", To="Eve")
    page.wait_for_selector(".moot .active")
    for view in (
        "inbox",
        "runs",
        "metrics",
        f"run/{run}#timeline",
        f"run/{run}#figures",
        f"compare?left={run}&right={run}",
    ):
        page.goto("about:blank")
        page.goto(f"{server.url}/{view}")
        page.wait_for_selector("main >> text=onerror=document.title", state="attached")
        assert page.locator("main img, main script").count() == 0, view
        assert page.title() != "broken", view


class Elsewhere(BaseHTTPRequestHandler):
    """A page of another port of this machine, to which a browser sends the same cookies."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>elsewhere</title>")

    def log_message(self, *_: object) -> None: ...


TRIES = """async (url) => {
    const ask = (options) =>
        fetch(url + "/api/runs", {credentials: "include", ...options}).then(found => found.status, () => "refused");
    const body = JSON.stringify({machine: "pipeline", input: {brief: "x"}, model: "rehearsal"});
    const stream = new Promise(done => {
        const source = new EventSource(url + "/api/runs/x/events", {withCredentials: true});
        source.onopen = () => done("open");
        source.onerror = () => (source.close(), done("refused"));
    });
    const headers = {"content-type": "application/json"};
    const acted = await ask({method: "POST", body, headers});
    return [await ask({}), acted, await ask({method: "POST", body, mode: "no-cors"}), await stream];
}"""


def test_a_page_of_another_origin_can_neither_read_nor_act(chromium: Any, server: Server) -> None:
    other = HTTPServer(("127.0.0.1", 0), Elsewhere)
    Thread(target=other.serve_forever, daemon=True).start()
    context = chromium.new_context()
    try:
        page = context.new_page()
        page.goto(server.link)
        page.goto(f"http://127.0.0.1:{other.server_port}/")
        answers = page.evaluate(TRIES, server.url)
        assert answers[0] == answers[1] == answers[3] == "refused"
        page.goto(f"{server.url}/runs")
        page.wait_for_selector("text=No runs here")
    finally:
        context.close()
        other.shutdown()
        other.server_close()


VIEWS = {
    "inbox": ".question",
    "runs": ".row",
    "start?machine=debate": "form .primary",
    "start?machine=arena": ".warnings",
    "check": ".verdict",
    "metrics": ".bars",
    "compare": "#left",
    "run/letter-1": ".moot .active",
    "run/verdict-1": "fieldset",
    "run/letter-1#figures": ".scroll",
    "run/letter-1#timeline": ".tick",
    "run/letter-1#data": "pre.exact",
    "run/studio": ".talk",
    "run/till#machine": "h2:has-text('The panel')",
    "run/haiku#machine": "h2:has-text('The attempts')",
    "run/table#machine": "h2:has-text('The vote')",
    "compare?left=till&right=haiku": ".split",
}
"""Every view, and what is there when it is drawn."""


def scripted(name: str) -> tuple[str, str]:
    return "--model", f"scripted:{EXAMPLES / name}.json"


def visited(context: Any, server: Server) -> Iterator[tuple[str, Any]]:
    """Every view of a page with a run that waits."""
    for machine in ("LETTER", "VERDICT"):
        began = started(server, "run", f"machines.py:{machine}", "Eve", "--run-id", f"{machine.lower()}-1")
        assert began.returncode == 5, began.stderr
    for order in (
        ("team", "--plain", "--run-id", "studio", "--script", f"{EXAMPLES}/team_typed.txt", *scripted("team")),
        ("debate", "Where?", "--run-id", "till", "--options", "SQLite,PostgreSQL,Redis", *scripted("debate")),
        ("pipeline", "A haiku about tides", "--run-id", "haiku", *scripted("haiku")),
        ("arena", "Write the tide table", "--run-id", "table", "--yes", *scripted("arena_rollback")),
    ):
        begun = started(server, *order)
        assert "Traceback" not in begun.stderr, begun.stderr
    page = context.new_page()
    page.goto(server.link)
    for view, part in VIEWS.items():
        page.goto("about:blank")
        page.goto(f"{server.url}/{view}")
        page.wait_for_selector(part)
        yield view, page


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_accessibility_error(chromium: Any, server: Server, scheme: str) -> None:
    context = chromium.new_context(color_scheme=scheme, bypass_csp=True)
    try:
        for view, page in visited(context, server):
            found = Axe().run(page).response["violations"]
            serious = [problem for problem in found if problem["impact"] in ("serious", "critical")]
            assert serious == [], f"{view}: {json.dumps(serious, indent=1)[:3000]}"
    finally:
        context.close()


def test_everything_fits_at_400_pixels(chromium: Any, server: Server) -> None:
    context = chromium.new_context(viewport={"width": 400, "height": 800})
    try:
        for view, page in visited(context, server):
            assert page.evaluate("document.documentElement.scrollWidth") <= 400, view
    finally:
        context.close()
