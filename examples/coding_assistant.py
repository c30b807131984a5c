"""A small coding assistant: a coder writes, tests run in the sandbox, a reviewer judges, and you approve the commit.

In the repository that it is to work on:  moot run FILE/coding_assistant.py "Add a function that …" --workspace .
"""

import asyncio
from dataclasses import dataclass, replace

from moothall import (
    Budget, Final, GaveUp, Machine, On, Replied, Returned, State, anywhere, ask, call, otherwise, question, tool, yes,
)

READING = ["read_file", "list_directory", "search_files", "git_status", "git_diff"]


@dataclass(frozen=True)
class Verdict:
    good: bool
    notes: str


@dataclass(frozen=True)
class Job:
    task: str
    command: str = "python3 -m unittest -q"
    notes: str = "none yet"
    message: str = ""


async def commit(message: str) -> str:
    """Commit all changes of the current folder's repository; the sandbox keeps agents away from it."""
    for words in (["add", "--all"], ["commit", "--quiet", "--message", message]):
        process = await asyncio.create_subprocess_exec("git", *words)
        if await process.wait():
            raise OSError(f"git {words[0]} failed")
    return f"committed: {message}"


commit = tool(commit, repeats="at-most-once", policy="ask")  # type: ignore[assignment]


def tests_pass(job: Job, returned: Returned[dict[str, object]]) -> bool:
    return returned.value["exit_code"] == 0


def is_good(job: Job, reply: Replied[Verdict]) -> bool:
    return reply.value.good


def keep_failures(job: Job, returned: Returned[dict[str, str]]) -> Job:
    return replace(job, notes=f"the tests fail: {returned.value['stderr'][-2000:]}")


def keep_verdict(job: Job, reply: Replied[Verdict]) -> Job:
    return replace(job, notes=reply.value.notes, message=f"{job.task}\n\n{reply.value.notes}")


ASSISTANT = Machine(
    "coding_assistant", data=Job, budget=Budget(calls=100), result=lambda job: job.notes,
    states=[
        State("coding",     enter=ask("coder", "Carry out: {task}\nNotes: {notes}", role="coder", rounds=30,
                                      tools=[*READING, "write_file", "edit_file"])),
        State("testing",    enter=call("execute_terminal", "command")),
        State("reviewing",  enter=ask("reviewer", "Judge the changes for: {task}", reply=Verdict, role="reviewer",
                                      tools=READING)),
        State("approving",  enter=question("Commit this? {message}")),
        State("committing", enter=call(commit, "message")),
        Final("committed"), Final("left"),
    ],
    moves=[
        On("coding",     Replied,   to="testing"),
        On("testing",    Returned,  to="reviewing",  when=tests_pass),
        On("testing",    Returned,  to="coding",     do=keep_failures, at_most=5),
        On("reviewing",  Replied,   to="approving",  when=is_good, do=keep_verdict),
        On("reviewing",  Replied,   to="coding",     do=keep_verdict, at_most=3),
        On("approving",  otherwise, to="committing", when=yes),
        On("approving",  otherwise, to="left"),
        On("committing", Returned,  to="committed"),
        On("testing",    otherwise, to="left"),
        On("reviewing",  otherwise, to="left"),
        On(anywhere,     GaveUp,    to="left",       do=lambda job, event: replace(job, notes=event.reason)),
    ],
)
