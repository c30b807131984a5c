"""Commands that look at machines: `check`, `graph`, `conformance`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from moothall.analysis.certify import Certificate, Unbounded
from moothall.analysis.verify import Finding, verify
from moothall.app.kinds.check import Check
from moothall.app.kinds.python import find, is_workflow
from moothall.app.kinds.scxml import run_folder
from moothall.app.kinds.workflow.files import Checked, files_at, is_file_or_folder
from moothall.app.report.picture import secret_in
from moothall.cli.main import DEFINITION, DONE, FAILED
from moothall.cli.options import MACHINE
from moothall.cli.screen import counted, painted, print_json
from moothall.drawing.text import draw
from moothall.errors import Refused
from moothall.kernel.codec import encode
from moothall.kernel.machine import Machine
from moothall.scripting.children import is_installed
from moothall.scripting.javascript import JavaScript

Work = Callable[[Namespace], int]


def check(parser: ArgumentParser) -> Work:
    """Check machines and workflow files."""
    parser.add_argument("machine", nargs="+", help=f"{MACHINE}; a folder of workflow files")
    parser.add_argument("--json", action="store_true", help="print findings and certificate as JSON")

    def work(chosen: Namespace) -> int:
        checking = Check()
        looks = [look for source in chosen.machine for look in _looks(checking, source)]
        if chosen.json:
            plain = [look.plain for look in looks]
            print_json(plain[0] if len(chosen.machine) == 1 and len(plain) == 1 else plain)
        else:
            for look in looks:
                look.show()
        return DEFINITION if any(look.is_wrong for look in looks) else DONE

    return work


class Look(NamedTuple):
    """What was found out about one machine or file: for scripts, for people, and whether it can be used."""

    plain: Any
    show: Callable[[], None]
    is_wrong: bool


def _looks(checking: Check, source: str) -> Iterator[Look]:
    if not is_file_or_folder(source) and not is_workflow(source):
        yield _machine_look(checking, find(source))
        return
    for path in _files(source):
        yield _file_look(checking, path)


def _files(source: str) -> list[Path]:
    if is_file_or_folder(source):
        return files_at(Path(source))
    from moothall.app.kinds.workflow.runs import spot_of  # only a workflow that is named and not its file needs it

    return files_at(spot_of(source).path)


def _machine_look(checking: Check, machine: Machine) -> Look:
    findings, bound = verify(machine), checking.certificate(machine)

    def show() -> None:
        for alike in _grouped(findings):
            print(_line(alike))
        print(_bound(bound))

    plain = {"machine": machine.name, "findings": findings, "certificate": bound}
    return Look(plain, show, any(finding.level == "error" for finding in findings))


def _file_look(checking: Check, path: Path) -> Look:
    checked = checking.file(path)
    bounds = checking.certificates(checked)
    plain = {**encode(checked), "certificates": bounds}
    is_wrong = checked.is_wrong or any(isinstance(bound, Unbounded) for bound in bounds.values())
    return Look(plain, partial(_show_file, checked, bounds), is_wrong)


def _show_file(checked: Checked, bounds: Mapping[str, Certificate | Unbounded]) -> None:
    for one in checked.findings:
        place = painted(f"{checked.file}:{one.line}", "bold")
        inside = f"{one.workflow}: " if one.workflow else ""
        print(f"{_level(one.level)} {one.code} {place} {inside}{one.pointer or '/'}: {one.why}\n      {one.remedy}")
    errors = sum(one.level == "error" for one in checked.findings)
    warnings = len(checked.findings) - errors
    names = ", ".join(checked.workflows) or "no workflow"
    print(f"{checked.file}: {names}: {counted(errors, 'errors')}, {counted(warnings, 'warnings')}")
    for name, bound in bounds.items():
        print(_bound(bound) if len(bounds) == 1 else f"{name}: {_bound(bound)}")


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
        with JavaScript() if is_installed() else nullcontext() as evaluate:
            score = run_folder(Path(chosen.folder), tiers or None, evaluate)
        if chosen.json:
            failures = [failure.id for failure in score.failures]
            print_json({"passed": score.passed, "failed": score.failed, "failures": failures})
        else:
            for failure in score.failures:
                print(f"{painted('failed', 'red')} {failure.id}: {failure.reason}")
            print(f"{score.passed} passed, {score.failed} failed")
        return FAILED if score.failed else DONE

    return work


def _grouped(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Findings that say the same of several places, together."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.code, finding.why), []).append(finding)
    return list(groups.values())


def _line(alike: list[Finding]) -> str:
    first = alike[0]
    places = ", ".join(painted(finding.place, "bold") for finding in alike)
    return f"{_level(first.level)} {first.code} {places}: {first.why}\n      {first.remedy}"


def _bound(bound: Certificate | Unbounded) -> str:
    if isinstance(bound, Unbounded):
        return f"{painted('no bound', 'red')}: {bound.why}"
    parts = [counted(most, name) for name, most in {"transitions": bound.transitions, **bound.resources}.items()]
    return (
        f"{painted('bounded', 'green')}: at most " + ", ".join(parts) + ("" if bound.exact else " (an upper estimate)")
    )
