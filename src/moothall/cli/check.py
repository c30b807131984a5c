"""Commands that look at machines: `check`, `graph`, `conformance`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path

from moothall.app.kinds.check import Check, Examined, Told
from moothall.app.kinds.scxml import score_folder
from moothall.app.kinds.source import find
from moothall.app.report.picture import secret_in
from moothall.app.values import Certificate, Unbounded, draw
from moothall.cli.main import DEFINITION, DONE, FAILED
from moothall.cli.options import MACHINE
from moothall.cli.screen import counted, painted, print_json
from moothall.errors import Refused

Work = Callable[[Namespace], int]


def check(parser: ArgumentParser) -> Work:
    """Check machines and workflow files."""
    parser.add_argument("machine", nargs="+", help=f"{MACHINE}; a folder of workflow files")
    parser.add_argument("--json", action="store_true", help="print findings and certificate as JSON")

    def work(chosen: Namespace) -> int:
        checking = Check()
        examined = [found for source in chosen.machine for found in checking.examine(source)]
        if chosen.json:
            plain = [found.plain for found in examined]
            print_json(plain[0] if len(chosen.machine) == 1 and len(plain) == 1 else plain)
        else:
            for found in examined:
                _show(found)
        return DEFINITION if any(found.is_wrong for found in examined) else DONE

    return work


def _show(examined: Examined) -> None:
    for alike in _grouped(examined.told):
        print(_line(alike))
    if examined.summary:
        print(examined.summary)
    for name, bound in examined.bounds.items():
        print(_bound(bound) if len(examined.bounds) == 1 else f"{name}: {_bound(bound)}")


def _level(level: str) -> str:
    return painted(level, "red" if level == "error" else "yellow")


def graph(parser: ArgumentParser) -> Work:
    """Draw a machine."""
    parser.add_argument("machine", help=MACHINE)
    parser.add_argument(
        "--format",
        choices=("tree", "mermaid", "dot", "json"),
        default="mermaid",
        help="what to draw it as (default: %(default)s)",
    )
    parser.add_argument("--active", default="", metavar="STATES", help="highlight these states, such as drafting,web")

    def work(chosen: Namespace) -> int:
        active = [state.strip() for state in chosen.active.split(",") if state.strip()]
        machine = find(chosen.machine)
        if text := secret_in(machine):
            raise Refused(f"{machine.name} has a secret in its table, in {text!r}; take it out, then it can be drawn")
        print(draw(machine, chosen.format, active=active).rstrip())
        return DONE

    return work


def conformance(parser: ArgumentParser) -> Work:
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
                print(f"{painted('failed', 'red')} {failure.id}: {failure.reason}")
            print(f"{score.passed} passed, {score.failed} failed")
        return FAILED if score.failed else DONE

    return work


def _grouped(told: Sequence[Told]) -> list[list[Told]]:
    """Findings that say the same of several places, together."""
    groups: dict[tuple[str, str, str], list[Told]] = {}
    for finding in told:
        groups.setdefault((finding.code, finding.why, finding.inside and f"{len(groups)}"), []).append(finding)
    return list(groups.values())


def _line(alike: list[Told]) -> str:
    first = alike[0]
    places = ", ".join(painted(finding.place, "bold") for finding in alike)
    inside = f" {first.inside}" if first.inside else ""
    return f"{_level(first.level)} {first.code} {places}{inside}: {first.why}\n      {first.remedy}"


def _bound(bound: Certificate | Unbounded) -> str:
    if isinstance(bound, Unbounded):
        return f"{painted('no bound', 'red')}: {bound.why}"
    parts = [counted(most, name) for name, most in {"transitions": bound.transitions, **bound.resources}.items()]
    return (
        f"{painted('bounded', 'green')}: at most " + ", ".join(parts) + ("" if bound.exact else " (an upper estimate)")
    )
