"""The program of the child: a question in, a line of JSON out, a fresh context for each. Imports nothing of ours.

The arguments are files of JavaScript. A question names those that it needs: the value of the first is a function of the
question and the data, both as JSON, and of the values of the others. Each question is a line; where it says so, a line
with new data follows, else the last data are used again. Besides its three pipes the child can open nothing: no file,
no socket.
"""

import json
import resource
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import quickjs

STACK = 1024 * 1024
ADDRESS_SPACE = 512 * 1024 * 1024
PIPES = 3


def main() -> None:
    sources = {Path(name).stem: Path(name).read_text("utf-8") for name in sys.argv[1:]}
    for number in (signal.SIGPROF, signal.SIGXCPU):
        signal.signal(number, signal.SIG_DFL)
    limit(resource.RLIMIT_AS, ADDRESS_SPACE)
    limit(resource.RLIMIT_FSIZE, 0)
    limit(resource.RLIMIT_CORE, 0)
    limit(resource.RLIMIT_NPROC, 0)
    limit(resource.RLIMIT_NOFILE, PIPES)
    for question, asked, data in questions():
        sys.stdout.buffer.write(evaluate_line(sources, question, asked, data).encode() + b"\n")
        sys.stdout.buffer.flush()


def limit(what: int, most: int) -> None:
    resource.setrlimit(what, (most, most))


def questions() -> Iterator[tuple[str, dict[str, Any], str]]:
    """Each question as it came and read, with the data that it is about."""
    data = "null"
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        if asked["has_data"]:
            data = sys.stdin.buffer.readline().decode()
        yield line.decode(), asked, data


def evaluate_line(sources: dict[str, str], question: str, asked: dict[str, Any], data: str) -> str:
    """The answer as one line of JSON."""
    bound_process(asked["seconds"])
    context = quickjs.Context()
    context.set_memory_limit(asked["memory"])
    context.set_max_stack_size(STACK)
    evaluate, *others = [context.eval(sources[name]) for name in asked["files"]]
    context.set_time_limit(asked["seconds"])
    try:
        text = str(evaluate(question, data, *others))
    except quickjs.JSException as error:
        return json.dumps({"failed": str(error).strip().partition("\n")[0][:300]})
    except MemoryError:
        return json.dumps({"failed": "out of memory"})
    return text.replace("\n", " ")


def bound_process(seconds: float) -> None:
    """Let the system end this process where the engine's own limit does not: in the middle of a native loop."""
    signal.setitimer(signal.ITIMER_PROF, 2 * seconds)
    most = int(time.process_time() + 2 * seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))


if __name__ == "__main__":
    main()
