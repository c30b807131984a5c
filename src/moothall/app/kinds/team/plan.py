"""`!plan`: whoever drafts a workflow is told its form; a draft is checked as `moot check` does, kept, and drawn.

The name of its file ends with the hash of what was checked. A file that is another one by the time it is approved does
not begin: what a person approves is what was shown.
"""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from hashlib import sha256
from os.path import exists
from pathlib import Path
from typing import Any

from moothall.agents.ask import Replied
from moothall.agents.roles import over_shipped
from moothall.app.kinds.source import find
from moothall.app.kinds.workflow.files import check_file, template
from moothall.drawing.text import draw
from moothall.errors import DefinitionError, MoothallError, Refused
from moothall.kernel.events import Event
from moothall.kernel.machine import Machine
from moothall.machines.team.state import AskPlan, CheckPlan, PlanChecked
from moothall.machines.workflow.schema import SHAPE
from moothall.performers.agents import AgentPerformer
from moothall.runtime.ports import Context

_HASHED = re.compile(r"-([0-9a-f]{12})\.json$")
_NAME = re.compile(r"[a-z0-9_]{1,60}")
MOST_PROBLEMS = 12


class Planner:
    """Has a workflow drafted by whoever plays `planner`; where nobody but a stand-in does, it is the usual template."""

    def __init__(self, agents: AgentPerformer, *, is_played: bool) -> None:
        self._agents, self._is_played = agents, is_played

    async def __call__(self, effect: AskPlan, context: Context) -> Event:
        text = str(effect.arguments["text"])
        if not self._is_played:
            return Replied(effect.agent, json.dumps(usual_plan(text)), usual_plan(text), effect.shape, id=effect.id)
        form = {"example": template("my_workflow"), "roles": ", ".join(known_roles())}
        return await self._agents(replace(effect, arguments={**effect.arguments, **form}), context)


def known_roles() -> list[str]:
    """The roles that agents of a draft may have."""
    return sorted(over_shipped({}))


def draft_schema() -> dict[str, Any]:
    """The shape of a draft: a workflow, of which the prompt says in words who may take part and how it is called."""
    parts = dict(SHAPE.parts)
    whole, agent = parts.pop(SHAPE.whole), parts["Agent"]
    role = {**agent["properties"]["agent_role"], "enum": known_roles()}
    name = {**whole["properties"]["workflow_name"], "pattern": f"^{_NAME.pattern}$"}
    return {
        **whole,
        "properties": {**whole["properties"], "workflow_name": name},
        "$defs": {**parts, "Agent": {**agent, "properties": {**agent["properties"], "agent_role": role}}},
    }


def usual_plan(text: str) -> Any:
    """The plan where no model drafts one: somebody works, somebody reviews, until it is good."""
    words = re.findall(r"[a-z0-9]+", text.lower())[:4] or ["plan"]
    plain = json.loads(template("plan_" + "_".join(words)))
    return {**plain, "description": f"Drafted without a model, for: {text[:200]}"}


class PlanChecker:
    """Keeps a draft in the workspace of the run, checks it and draws it."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    async def __call__(self, effect: CheckPlan, context: Context) -> Event:
        return await asyncio.to_thread(_check_plan, effect, self._folder or effect.root)


def _check_plan(effect: CheckPlan, folder: str) -> PlanChecked:
    """A draft that was checked; one with errors is not kept."""
    text = json.dumps(effect.plan, indent=2, ensure_ascii=False) + "\n"
    name = str(effect.plan.get("workflow_name", ""))
    stem = name if _NAME.fullmatch(name) else "plan"
    path = Path(folder or ".").resolve() / f"{stem}-{_digest(text.encode())}.json"
    was_there = exists(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        findings = check_file(path).findings
        errors = [f"{problem.pointer}: {problem.why}; {problem.remedy}" for problem in findings if _is_error(problem)]
        drawing = "" if errors else draw(find(str(path)), "tree").rstrip()
    except OSError as error:
        raise DefinitionError(f"the draft {path} cannot be written: {error.strerror}") from error
    except MoothallError as error:
        errors, drawing, findings = [str(error)], "", ()
    if errors:
        if not was_there:
            path.unlink(missing_ok=True)
        return PlanChecked(problems=tuple(errors[:MOST_PROBLEMS]), id=effect.id)
    notes = tuple(f"{problem.why}; {problem.remedy}" for problem in findings)
    return PlanChecked(str(path), drawing, (), notes[:MOST_PROBLEMS], effect.id)


def _is_error(problem: Any) -> bool:
    return bool(problem.level == "error")


def _digest(text: bytes) -> str:
    return sha256(text).hexdigest()[:12]


def drafted_machine(path: str) -> Machine:
    """The workflow at a path; refused where it is a draft that was changed after it was shown."""
    hashed = _HASHED.search(path)
    if hashed is not None and Path(path).is_file() and _digest(Path(path).read_bytes()) != hashed[1]:
        raise Refused(f"{path} was changed after it was drafted and shown; save it under another name, and start that")
    return find(path)


def save_plan(path: str, name: str, folder: Path = Path("workflows")) -> Path:
    """Save a draft under a name by which it can be started again: `!workflow NAME`."""
    if not _NAME.fullmatch(name):
        raise Refused("write a name of small letters, digits and underscores, such as: !save tide_tables")
    target = folder / f"{name}.json"
    try:
        plan = json.loads(Path(path).read_text(encoding="utf-8"))
        folder.mkdir(parents=True, exist_ok=True)
        with target.open("x", encoding="utf-8") as file:
            file.write(json.dumps({**plan, "workflow_name": name}, indent=2, ensure_ascii=False) + "\n")
    except FileExistsError as error:
        raise Refused(f"{target} is there already; choose another name") from error
    except (OSError, ValueError) as error:
        raise DefinitionError(f"the plan {path} cannot be saved as {target}: {error}") from error
    return target
