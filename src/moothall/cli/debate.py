"""Commands of debates: `debate` runs one, `score` scores what came of some."""

from __future__ import annotations

import asyncio
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path

from moothall.app.config.access import opened
from moothall.app.kinds.debate.output import ENDINGS, compare, text_of, vote_for
from moothall.app.kinds.debate.scores import FORMS, machine_of_scoring, rubric_at, scores_in, scoring_of
from moothall.app.kinds.debate.start import PROTOCOLS, Chosen, debate_of, default_model, machine_for, model_for
from moothall.app.kinds.kind import Presented
from moothall.app.report.report import FORMATS
from moothall.app.report.report import report as reported
from moothall.app.runs.moothall import Moothall
from moothall.app.runs.outcome import Outcome
from moothall.cli.options import Handler, nonempty_text, tell, whole_number, words
from moothall.cli.run import add_beginning, add_workspace, start, workspace_of
from moothall.cli.screen import notice
from moothall.cli.view import write


def debate(parser: ArgumentParser) -> Handler:
    """Run a debate."""
    _add_beginning(parser)
    _add_ending(parser)
    add_beginning(parser)
    add_workspace(parser)

    def work(chosen: Namespace) -> int:
        if chosen.files is not None and chosen.workspace:
            parser.error("--files is a folder to read, --workspace one to work in; name one of them")
        if chosen.output is not None and chosen.output.suffix not in ENDINGS:
            parser.error(f"-o {chosen.output}: write {' or '.join(f'FILE{ending}' for ending in ENDINGS)}")
        if chosen.report is not None and chosen.report.suffix[1:] not in FORMATS:
            parser.error(f"--report {chosen.report}: write FILE.{', FILE.'.join(FORMATS)}")
        begun = debate_of(
            Chosen(
                problem=chosen.problem,
                problem_file=chosen.problem_file,
                config=chosen.config,
                agents=chosen.agents or "",
                rounds=chosen.rounds,
                clarify=chosen.clarify,
                answers=chosen.answers,
                options=chosen.options or "",
                protocol=chosen.protocol or "",
                seat=chosen.seat or "",
                files=chosen.files,
            ),
            notice,
        )
        chosen.model = model_for(begun, chosen.model or "")
        if chosen.seat and not getattr(chosen, "person", ""):
            chosen.person = chosen.seat
        return start(
            chosen, machine_for(begun, chosen.functions or ""), begun, chosen.budget, lambda *run: _end(chosen, *run)
        )

    return work


def _add_beginning(parser: ArgumentParser) -> None:
    parser.add_argument("problem", nargs="?", type=words, help="what is to be debated")
    parser.add_argument("-p", "--problem-file", type=Path, metavar="FILE", help="read the problem from a file")
    parser.add_argument("-c", "--config", type=Path, metavar="CONFIG", help="a configuration, JSON or YAML")
    parser.add_argument(
        "-a", "--agents", type=nonempty_text, metavar="ROLES", help="the panel, such as architect,security,kiss"
    )
    parser.add_argument("-r", "--rounds", type=whole_number(1), metavar="N", help="the most rounds (default: 3)")
    parser.add_argument("--clarify", action="store_true", help="let the agents ask you first")
    parser.add_argument(
        "--answers", type=Path, metavar="FILE", help="answers to their questions, from a JSON or YAML file"
    )
    parser.add_argument("--options", type=nonempty_text, metavar="A,B", help="the answer is one of these")
    parser.add_argument(
        "--protocol",
        choices=PROTOCOLS,
        help="debate: always debate; vote: vote over independent drafts; gated: vote first, and debate only where no "
        "majority holds. The default is gated where answers can be counted: on recorded debates it was right as often "
        "as a debate, for half of the text. Open answers are debated",
    )
    parser.add_argument(
        "--functions",
        type=nonempty_text,
        metavar="MODULE",
        help="FILE.py or module with the function that debate.check names",
    )
    parser.add_argument("--seat", type=nonempty_text, metavar="NAME", help="take a seat on the panel yourself")
    parser.add_argument(
        "--files", type=Path, metavar="DIR", help="a folder that the panel may look into, with tools that only read"
    )


def _add_ending(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--compare",
        action="store_true",
        help="compare the debate with a vote of equal budget: afterwards as many calls again go into independent "
        "drafts; their number is shown before they are made",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="also write the result: FILE.json has the whole state, FILE.md a document",
    )
    parser.add_argument(
        "--report", type=Path, metavar="FILE", help="also write the report, as `moot report` does: html, md, csv, json"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="show whole texts, not only their beginnings")


async def _end(chosen: Namespace, hall: Moothall, outcome: Outcome, presented: Presented) -> Presented:
    """Compare and write, as was asked for; a debate that waits for a person is written as it stands."""
    if chosen.compare and outcome.status == "done":
        presented = await _compare(chosen, hall, outcome, presented)
    if chosen.output is not None:
        write(chosen.output, await text_of(hall, outcome, presented.plain, chosen.output))
        tell(chosen, f"written: {chosen.output}")
    if chosen.report is not None:
        write(chosen.report, await reported(hall.store, outcome.run, chosen.report.suffix[1:]))
        tell(chosen, f"written: {chosen.report}")
    return presented


async def _compare(chosen: Namespace, hall: Moothall, outcome: Outcome, presented: Presented) -> Presented:
    vote = await vote_for(hall.store, outcome.run, outcome.data)
    if vote is None:
        notice("nothing is compared: the debate was no longer than a vote")
        return presented
    drafts = len(vote.begun.configuration.panel)
    cost = f"{vote.calls} calls more, as the run {vote.run}"
    notice(f"comparing with a vote of equal budget: {drafts} independent drafts are bought now; {cost}")
    text, plain = await compare(
        hall, outcome, vote, model=chosen.model, budget=chosen.budget, workspace=workspace_of(chosen)
    )
    notice(text)
    return replace(presented, plain={**presented.plain, "compare": plain})


def score(parser: ArgumentParser) -> Handler:
    """Score solutions."""
    parser.add_argument("run", nargs="+", help="the ids of debates that are over")
    parser.add_argument(
        "-c", "--config", type=Path, required=True, metavar="RUBRIC", help="criteria and judges, JSON or YAML"
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help=f"also write the scores: FILE{', FILE'.join(FORMS)}"
    )
    add_beginning(parser)

    def work(chosen: Namespace) -> int:
        if chosen.output is not None and chosen.output.suffix not in FORMS:
            parser.error(f"-o {chosen.output}: write FILE{', FILE'.join(FORMS)}")
        rubric = rubric_at(chosen.config)
        with opened(chosen.store) as store:
            begun = asyncio.run(scoring_of(store, rubric, dict.fromkeys(chosen.run)))
        models = (judge.played_by for judge in rubric.judges if judge.played_by)
        chosen.model = chosen.model or default_model(models)
        return start(chosen, machine_of_scoring(begun), begun, chosen.budget, lambda *run: _write_scores(chosen, *run))

    return work


async def _write_scores(chosen: Namespace, hall: Moothall, outcome: Outcome, presented: Presented) -> Presented:
    if chosen.output is not None and outcome.status == "done":
        write(chosen.output, scores_in(presented.plain, chosen.output.suffix))
        tell(chosen, f"written: {chosen.output}")
    return presented
