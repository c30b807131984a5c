"""`!simple`: a fixed line of phases in place of a machine of personas.

Ideation: a concept, a design, a challenge by engineering, a refinement, a summary. Planning: a list of files, a
challenge by the direction, a refinement. Implementation: one file for each entry. `!business` and `!goals`: direction,
finance, marketing, and what follows from all three. At the end of a phase the user approves it, or says something,
and the phase is done again with that.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from moothall.kernel.effects import Effect
from moothall.machines.team.definition import AWAIT_APPROVAL, Roster
from moothall.machines.team.directives import USER
from moothall.machines.team.state import BY_USER, SYSTEM, Conversation, Decision, Line, LineStep, WriteFile

PHASES = {"start": ("ideation", "planning", "implementation"), "business": ("business",), "goals": ("goals",)}
FILES = "one on each line, as `path: purpose`"
"""How a list of files is asked for."""
STEPS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "ideation": (
        ("creative_partner", "concept", "Write a concept for: {about}"),
        ("game_designer", "design", "Turn the concept into a design."),
        ("lead_engineer", "feasibility", "Challenge the design: what cannot be built as it stands?"),
        ("game_designer", "design", "Refine the design by what was challenged."),
        ("creative_partner", "concept", "Sum up what came of it, for the user."),
    ),
    "planning": (
        ("project_manager", "planning", f"List the files that are to be made, {FILES}."),
        ("ceo", "strategy", "Challenge the list of files: what is missing, what is not needed?"),
        ("project_manager", "planning", f"Refine the list of files; again {FILES}."),
    ),
    "business": (
        ("ceo", "strategy", "Judge the concept: {about}"),
        ("cfo", "finance", "Judge what it costs and brings in: {about}"),
        ("cmo", "marketing", "Judge whom it reaches, and how: {about}"),
        ("ceo", "strategy", "Put the three views together into one recommendation."),
    ),
}
STEPS["goals"] = tuple(
    (name, skill, task.replace("the concept: {about}", "what our goals should be"))
    for name, skill, task in STEPS["business"]
)
_ENTRY = re.compile(r"^[\s\-*\d.)`]*(?P<path>[\w][\w./-]*\.\w+)`?\s*(?::\s*(?P<purpose>.*))?$")
MOST_FILES = 50


def start_line(roster: Roster, data: Conversation, name: str, about: str) -> Conversation:
    """A conversation at the beginning of a line."""
    phase = PHASES[name][0]
    line = Line(name, about, phase, ())
    return replace(data, line=replace(line, steps=_steps(roster, line)))


def with_feedback(roster: Roster, data: Conversation, text: str) -> Conversation:
    """The phase that is under way, once more, with what the user says; without one a line begins."""
    if data.line is None:
        return start_line(roster, data, "start", text)
    line = replace(data.line, feedback=(*data.line.feedback, text), place=0)
    return replace(data, line=replace(line, steps=_steps(roster, line)), reason="")


def with_reply(data: Conversation, content: str) -> tuple[Conversation, tuple[Effect, ...]]:
    """The line one step on; in the implementation a reply is a file."""
    line = data.line
    assert line is not None
    effects: tuple[Effect, ...] = ()
    if line.phase == "implementation" and line.place < len(line.steps):
        effects = (WriteFile(line.steps[line.place].phase, content, data.workspace),)
    results = {**line.results, line.phase: content}
    return replace(data, line=replace(line, place=line.place + 1, results=results)), effects


def next_step(data: Conversation) -> tuple[Conversation, Decision]:
    """Who is next in the line; at the end of a phase the user."""
    line = data.line
    assert line is not None
    if line.place < len(line.steps):
        step = line.steps[line.place]
        return data, Decision(step.persona, line.name, SYSTEM, f"{line.phase}: {step.task}", "STEP")
    reason = end_of_phase(line)
    return replace(data, reason=reason), Decision(AWAIT_APPROVAL, line.name, SYSTEM, reason, "STEP")


def end_of_phase(line: Line) -> str:
    """What waits at the end of a phase."""
    return f"{line.phase} is done; approve it, or say what has to change"


def with_approval(roster: Roster, data: Conversation) -> Conversation:
    """The next phase, or the end of the line."""
    line = data.line
    assert line is not None
    phases = PHASES[line.name]
    place = phases.index(line.phase) + 1
    if place == len(phases):
        reason = f"{line.name} is done"
        over = Decision(USER, BY_USER, "user", reason, "APPROVE")
        return replace(data, line=None, decided=over, reason=reason)
    line = replace(line, phase=phases[place], place=0, feedback=())
    line = replace(line, steps=_steps(roster, line))
    if not line.steps:
        reason = "the plan lists no files; say what is to be made"
        over = Decision(USER, line.name, SYSTEM, reason, "STEP")
        return replace(data, decided=over, reason=reason)
    return replace(data, line=line)


def _steps(roster: Roster, line: Line) -> tuple[LineStep, ...]:
    who = _seats(roster)
    said = "".join(f"\nThe user says: {text}" for text in line.feedback)
    if line.phase == "implementation":
        entries = planned_files(line.results.get("planning", ""))
        engineer = who("lead_engineer", "engineering")
        return tuple(
            LineStep(
                path, engineer, f"Write the file {path} ({purpose}). Your content is the file and nothing else.{said}"
            )
            for path, purpose in entries
        )
    return tuple(
        LineStep(line.phase, who(name, skill), task.replace("{about}", line.about) + said)
        for name, skill, task in STEPS[line.phase]
    )


def planned_files(text: str) -> tuple[tuple[str, str], ...]:
    """The files that a plan lists, one on each line, each once."""
    found = (_ENTRY.match(line) for line in text.splitlines())
    entries = {entry["path"]: (entry["purpose"] or "").strip() for entry in found if entry is not None}
    return tuple(entries.items())[:MOST_FILES]


def _seats(roster: Roster) -> Callable[[str, str], str]:
    """Who does what in a team: whoever is called so, else somebody who can, else whoever begins."""

    def who(name: str, skill: str) -> str:
        if name in roster.personas:
            return name
        able = (persona.id for persona in roster.team.personas if skill in persona.capabilities)
        return next(able, roster.team.start)

    return who
