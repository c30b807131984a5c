"""Commands that look at machines: `check`, `graph`, `conformance`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

from moothall.app.kinds.check import Check, Examined, Told
from moothall.app.kinds.scxml import score_folder
from moothall.app.kinds.source import find
from moothall.app.kinds.statechart import document_of
from moothall.app.report.amounts import format_count
from moothall.app.report.picture import secret_in
from moothall.app.values import Certificate, Unbounded, draw
from moothall.cli.main import DEFINITION, DONE, FAILED
from moothall.cli.options import MACHINE, Handler, nonempty_text
from moothall.cli.screen import paint, print_json, show
from moothall.errors import Refused

ASKED = "ask.agent"
WORDS = {"ask.person": ("questions", ""), "call.tool": ("tool calls", ""), "start.child": ("children", "child")}
"""How kinds of effects are called where they are counted: several, and a single one."""


def check(parser: ArgumentParser) -> Handler:
    """Check machines and workflow files."""
    parser.add_argument("machine", nargs="+", help=f"{MACHINE}; a folder of workflow files")
    parser.add_argument("--roles", type=nonempty_text, metavar="FILE", help="the roles of a workflow's agents")
    parser.add_argument(
        "--functions",
        type=nonempty_text,
        metavar="FILE",
        help="the module with the functions that a workflow names as py:NAME",
    )
    parser.add_argument("--json", action="store_true", help="print findings and certificate as JSON")

    def work(chosen: Namespace) -> int:
        checking = Check(roles=chosen.roles or "", functions=chosen.functions or "")
        checks = [check for source in chosen.machine for check in checking.examine(source)]
        if chosen.json:
            plain = [check.plain for check in checks]
            print_json(plain[0] if len(chosen.machine) == 1 and len(plain) == 1 else plain)
        else:
            for check in checks:
                _show(check)
        return DEFINITION if any(check.is_wrong for check in checks) else DONE

    return work


def _show(examined: Examined) -> None:
    for alike in _group_findings(examined.told):
        show(_line(alike))
    if examined.summary:
        show(examined.summary)
    for name, bound in examined.bounds.items():
        show(_format_bound(bound) if len(examined.bounds) == 1 else f"{name}: {_format_bound(bound)}")


def _level(level: str) -> str:
    return paint(level, "red" if level == "error" else "yellow")


def graph(parser: ArgumentParser) -> Handler:
    """Draw a machine."""
    parser.add_argument("machine", help=MACHINE)
    parser.add_argument(
        "--format",
        choices=("tree", "mermaid", "dot", "json", "scxml"),
        default="mermaid",
        help="the format of the drawing (default: %(default)s)",
    )
    parser.add_argument("--active", default="", metavar="STATES", help="highlight these states, such as drafting,web")

    def work(chosen: Namespace) -> int:
        active = [state.strip() for state in chosen.active.split(",") if state.strip()]
        machine = find(chosen.machine)
        if text := secret_in(machine):
            raise Refused(f"{machine.name} has a secret in its table, in {text!r}; take it out, then it can be drawn")
        shown = document_of(machine) if chosen.format == "scxml" else draw(machine, chosen.format, active=active)
        print(shown.rstrip())
        return DONE

    return work


def conformance(parser: ArgumentParser) -> Handler:
    """Run a folder of statechart tests."""
    parser.add_argument("folder", help="a folder with index.tsv and the documents that it names")
    parser.add_argument("--tier", default="", help="only these tiers, such as A,B")
    parser.add_argument("--json", action="store_true", help="print the score as JSON")

    def work(chosen: Namespace) -> int:
        tiers = frozenset(part.strip() for part in chosen.tier.split(",") if part.strip())
        score = score_folder(Path(chosen.folder), tiers or None)
        if chosen.json:
            failures = [failure.id for failure in score.failures]
            print_json({"passed": score.passed, "failed": score.failed, "failures": failures})
        else:
            for failure in score.failures:
                print(f"{paint('failed', 'red')} {failure.id}: {failure.reason}")
            print(f"{score.passed} passed, {score.failed} failed")
        return FAILED if score.failed else DONE

    return work


def _group_findings(told: Sequence[Told]) -> list[list[Told]]:
    """Findings that say the same of several places, together."""
    groups: dict[tuple[str, str, str], list[Told]] = {}
    for finding in told:
        groups.setdefault((finding.code, finding.why, finding.inside and f"{len(groups)}"), []).append(finding)
    return list(groups.values())


def _line(alike: list[Told]) -> str:
    first = alike[0]
    places = ", ".join(paint(finding.place, "bold") for finding in alike)
    inside = f" {first.inside}" if first.inside else ""
    return f"{_level(first.level)} {first.code} {places}{inside}: {first.why}\n      {first.remedy}"


def _format_bound(bound: Certificate | Unbounded) -> str:
    if isinstance(bound, Unbounded):
        return f"{paint('no bound', 'red')}: {bound.why}"
    parts = [format_count(bound.transitions, "transitions")]
    for name, most in bound.resources.items():
        if name == ASKED and "calls" in bound.resources:  # each of them is a call
            continue
        once = bound.once.get(name, most)
        several, single = WORDS.get(name, (name, ""))
        parts.append(format_count(once, several, single) + (f" ({most:g} with every retry)" if once != most else ""))
    return f"{paint('bounded', 'green')}: at most " + ", ".join(parts) + ("" if bound.exact else " (an upper estimate)")
