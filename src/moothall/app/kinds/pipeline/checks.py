"""Validates plans: evaluates the checks of a pipeline, outside of the kernel, as a tool.

A check that goes wrong, or says neither yes nor no, is a mistake of its author and fails the run; it is never taken for
"no". Expressions see `plan`, `brief` and `inputs`; functions see a `Draft`. A file of checks names functions that are
registered here or by the caller, and never code to import.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

from moothall.errors import DefinitionError, Refused, words_of
from moothall.kernel.codec import decode, encode
from moothall.kernel.step import Failed, Value
from moothall.machines.pipeline import CHECK_PLAN, Job
from moothall.machines.pipeline.plans import DEFAULT_CHECKS, Check, CheckFunction, Draft, Plan
from moothall.scripting.javascript import JavaScript

Registered = Mapping[str, CheckFunction]


def read_checks(path: Path) -> tuple[Check, ...]:
    """The checks of a file: a JSON list of objects with `name`, `expression` or `function`, and `feedback`."""
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DefinitionError(f"{path}: the checks cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise DefinitionError(f"{path}: the checks are not JSON: {error}") from error
    try:
        checks = decode(tuple[Check, ...], plain, "checks")
    except Refused as refusal:
        raise DefinitionError(f"{path}: {refusal}") from refusal
    names = [check.name for check in checks]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise DefinitionError(f"{path}: two checks are called {twice!r}; rename one")
    if astray := next((check for check in checks if check.function and check.function not in DEFAULT_CHECKS), None):
        raise DefinitionError(f"{path}: {_missing_function(astray, DEFAULT_CHECKS)}")
    return checks


def as_checks(given: Mapping[str, CheckFunction | str]) -> tuple[Check, ...]:
    """Checks as they are given in Python, by name: an expression, or a function that is registered under the name."""
    plain = [
        {"name": name, "function": name} if callable(check) else {"name": name, "expression": check}
        for name, check in given.items()
    ]
    try:
        return decode(tuple[Check, ...], plain, "checks")
    except Refused as refusal:
        raise DefinitionError(f"{refusal}; write checks={{'name': function or expression}}") from refusal


def _missing_function(check: Check, functions: Registered) -> str:
    known = ", ".join(functions)
    return f"check {check.name!r} names the function {check.function!r}, which is not registered; there are {known}"


def checker(registered: Registered) -> Callable[..., Coroutine[Any, Any, list[str]]]:
    """The tool that tells what speaks against a plan, check by check, with these functions beside the shipped ones."""
    functions = {**DEFAULT_CHECKS, **registered}

    async def check_plan(plan: Any, checks: Any, brief: str, inputs: Any) -> list[str]:
        draft = Draft(decode(Plan, plan, "plan"), brief, inputs)
        return await asyncio.to_thread(_objections, draft, decode(tuple[Check, ...], checks, "checks"), functions)

    return check_plan


def lacking(job: Job) -> str:
    """Why a run cannot go on with the shipped functions alone; "" where it can."""
    for check in job.checks:
        if check.function and check.function not in DEFAULT_CHECKS:
            return f"{_missing_function(check, DEFAULT_CHECKS)}; go on in Python, with AgentOrchestrator(…).resume(…)"
    return ""


TOOLS: Mapping[str, Callable[..., Any]] = {CHECK_PLAN: checker({})}


def _objections(draft: Draft, checks: Sequence[Check], functions: Registered) -> list[str]:
    with JavaScript() as javascript:
        said = [
            _evaluate(check, draft, javascript) if check.expression else _call_check(check, draft, functions)
            for check in checks
        ]
    return [
        f"{check.name}: {check.feedback or word or 'it does not hold'}"
        for check, word in zip(checks, said, strict=True)
        if word is not True
    ]


def _evaluate(check: Check, draft: Draft, javascript: JavaScript) -> bool:
    """The value of an expression: the one place that knows the script engine."""
    match javascript(check.expression, encode(draft)):
        case Value(value=bool() as value):
            return value
        case Failed(reason=reason):
            raise DefinitionError(f"check {check.name!r}, {check.expression!r}: {reason}")
        case Value(value=value):
            raise DefinitionError(f"check {check.name!r} gave {value!r}; a check gives true or false")
        case _:
            raise DefinitionError(f"check {check.name!r} gave nothing; a check gives true or false")


def _call_check(check: Check, draft: Draft, functions: Registered) -> bool | str:
    if check.function not in functions:
        raise DefinitionError(_missing_function(check, functions))
    try:
        said: object = functions[check.function](draft)
    except (Exception, SystemExit) as error:  # the author's code may raise anything
        raise DefinitionError(f"check {check.name!r}: {words_of(error)}") from error
    if not isinstance(said, bool | str):
        raise DefinitionError(f"check {check.name!r} gave {said!r}; a check gives True, False or what is wrong")
    return said
