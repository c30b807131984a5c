"""The command that evaluates JavaScript as workflow files have it: `js`."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from typing import assert_never

from moothall.app.kinds.workflow.expression import evaluate
from moothall.app.values import Absent, Failed, Value
from moothall.cli.main import DONE, FAILED
from moothall.cli.options import Handler, nonempty_text
from moothall.cli.questions import read_json
from moothall.cli.screen import notice, print_json


def js(parser: ArgumentParser) -> Handler:
    """Evaluate an expression."""
    parser.add_argument(
        "expression", help="what to evaluate, such as 'common_data.count < 5' (write -- before one that begins with -)"
    )
    parser.add_argument(
        "--data",
        type=nonempty_text,
        metavar="FILE",
        help="the data that it sees: a JSON file with common_data, agents, tool_calls …",
    )
    parser.add_argument("--script", action="store_true", help="run it as a script and print common_data afterwards")
    parser.add_argument("--json", action="store_true", help='print {"value": …}, {} for undefined, or {"failed": …}')

    def work(chosen: Namespace) -> int:
        data = read_json(chosen.data) if chosen.data is not None else {}
        answer = evaluate(chosen.expression, data, "script" if chosen.script else "expression")
        match answer:
            case Value(value=value):
                print_json({"value": value}) if chosen.json else print(json.dumps(value, ensure_ascii=False))
            case Absent():
                print_json({}) if chosen.json else print("undefined")
            case Failed(reason=reason):
                if chosen.json:
                    print_json({"failed": reason})
                notice(f"moot js: {reason}")
                return FAILED
            case _:
                assert_never(answer)
        return DONE

    return work
