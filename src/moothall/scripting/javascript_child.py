"""The program of the child: one JSON line in, one JSON line out, a fresh context for each. Imports nothing of ours."""

import json
import resource
import sys
from typing import Any

import quickjs

MEMORY = 64 * 1024 * 1024
STACK = 512 * 1024
HARNESS = """
(() => {
    const run = globalThis.eval, write = JSON.stringify;
    return (text) => { const value = run(text), json = write(value); return json === undefined ? "" : json; };
})()
"""


def main() -> None:
    limit(resource.RLIMIT_AS, 1024 * 1024 * 1024)
    limit(resource.RLIMIT_FSIZE, 0)
    limit(resource.RLIMIT_CORE, 0)
    limit(resource.RLIMIT_NPROC, 0)
    limit(resource.RLIMIT_NOFILE, 16)
    for line in sys.stdin.buffer:
        print(json.dumps(evaluated(json.loads(line))), flush=True)


def limit(what: int, most: int) -> None:
    resource.setrlimit(what, (most, most))


def evaluated(asked: dict[str, Any]) -> dict[str, Any]:
    """The value of a script, nothing where it gave none, or what went wrong."""
    context = quickjs.Context()
    context.set_memory_limit(MEMORY)
    context.set_max_stack_size(STACK)
    harness = context.eval(HARNESS)
    for name, value in asked["scope"].items():
        context.set(name, context.parse_json(json.dumps(value)))
    context.set_time_limit(asked["seconds"])
    try:
        text = harness(asked["script"])
    except quickjs.JSException as error:
        return {"failed": str(error).strip().partition("\n")[0]}
    return {"value": json.loads(text)} if text else {}


if __name__ == "__main__":
    main()
