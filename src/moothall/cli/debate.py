"""The command that runs a debate: `debate`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path

from moothall.app.kinds.debate.start import PROTOCOLS, Chosen, debate_of, machine_for
from moothall.cli.options import named, whole_number, words
from moothall.cli.run import add_beginning, start

Work = Callable[[Namespace], int]


def debate(parser: ArgumentParser) -> Work:
    """Run a debate."""
    parser.add_argument("problem", nargs="?", type=words, help="what is to be debated")
    parser.add_argument("-p", "--problem-file", type=Path, metavar="FILE", help="read the problem from a file")
    parser.add_argument("-c", "--config", type=Path, metavar="CONFIG", help="a configuration, JSON or YAML")
    parser.add_argument(
        "-a", "--agents", type=named, metavar="ROLES", help="the panel, such as architect,security,kiss"
    )
    parser.add_argument("-r", "--rounds", type=whole_number(1), metavar="N", help="the most rounds (default: 3)")
    parser.add_argument("--clarify", action="store_true", help="let the agents ask you first")
    parser.add_argument("--answers", type=Path, metavar="FILE", help="answers to their questions, from a JSON file")
    parser.add_argument("--options", type=named, metavar="A,B", help="the answer is one of these")
    parser.add_argument(
        "--protocol",
        choices=PROTOCOLS,
        help="debate; vote over independent drafts; gated: a vote first, and a debate only where no majority holds. "
        "On recorded debates a gate was as right as a debate at a quarter of the text, so it is the default where "
        "answers can be counted; open answers are debated",
    )
    parser.add_argument(
        "--functions", type=named, metavar="MODULE", help="FILE.py or module: has the function that debate.check names"
    )
    parser.add_argument("--seat", type=named, metavar="NAME", help="take a seat on the panel yourself")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="also write it: x.json the whole state, x.md a document"
    )
    add_beginning(parser)

    def work(chosen: Namespace) -> int:
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
            )
        )
        return start(chosen, machine_for(begun, chosen.functions or ""), begun, chosen.budget)

    return work
