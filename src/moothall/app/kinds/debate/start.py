"""What a debate begins with, from what a caller chose: a problem, a configuration, and flags over it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

from moothall.agents.workspace import READS
from moothall.app.config.settings import model_setting
from moothall.app.kinds.debate import begin, with_functions
from moothall.app.kinds.debate.files import (
    ReadConfig,
    choice_of,
    digests_of,
    panel_of,
    read_answers,
    read_config,
    read_text,
)
from moothall.errors import DefinitionError, Refused
from moothall.kernel.frozen import Frozen
from moothall.kernel.machine import Machine
from moothall.machines.debate import debate, size_of
from moothall.machines.debate.definition import Configuration, DebateConfig, Protocol, with_seat, with_tools
from moothall.machines.debate.state import Debate

PROTOCOLS: tuple[str, ...] = get_args(Protocol)


class Chosen(Frozen):
    """What a caller chose; what is empty is left to the configuration."""

    problem: str | None = None
    problem_file: Path | None = None
    config: Path | None = None
    agents: str = ""
    rounds: int | None = None
    clarify: bool = False
    answers: Path | None = None
    options: str = ""
    protocol: Protocol | Literal[""] = ""
    seat: str = ""
    files: Path | None = None


def debate_of(chosen: Chosen, warn: Callable[[str], object] = lambda text: None) -> Debate:
    """The debate that is to begin; what is only doubtful is warned of."""
    if (chosen.problem is None) == (chosen.problem_file is None):
        raise Refused("give the problem once: as a text, or with -p FILE")
    problem = chosen.problem if chosen.problem_file is None else read_text(chosen.problem_file, "the problem")
    read = read_config(chosen.config) if chosen.config is not None else ReadConfig(Configuration(), {})
    configuration = read.configuration
    for warning in read.warnings:
        warn(warning)
    if chosen.agents:
        configuration = replace(configuration, agents=panel_of(chosen.agents))
    if chosen.seat:
        if chosen.seat in (agent.id for agent in configuration.agents):
            raise DefinitionError(f"the seat {chosen.seat!r} is taken; choose another name")
        configuration = with_seat(configuration, chosen.seat)
    if chosen.files is not None:
        configuration = with_tools(configuration, READS)
    configuration = replace(configuration, debate=_over(chosen, configuration))
    given = read_answers(chosen.answers) if chosen.answers is not None else {}
    try:
        begun = Debate(problem or "", configuration=configuration, prompts=read.prompts, given_answers=given)
        begun = replace(begun, files=digests_of(chosen.files)) if chosen.files is not None else begun
    except ValueError as error:
        raise Refused(str(error)) from error
    return begin(begun)


def _over(chosen: Chosen, configuration: Configuration) -> DebateConfig:
    """The configuration with flags over it."""
    debate = configuration.debate
    if chosen.rounds is not None:
        debate = replace(debate, rounds=chosen.rounds)
    if chosen.clarify or chosen.answers is not None:
        debate = replace(debate, interactiveClarifications=True)
    if chosen.options:
        debate = replace(debate, answer=choice_of(chosen.options))
    return replace(debate, protocol=chosen.protocol) if chosen.protocol else debate


def machine_for(begun: Debate, functions: str = "") -> Machine:
    """The machine of the size that a debate needs, with the functions of a module or file."""
    machine = debate(size_of(begun))
    return with_functions(machine, functions) if functions else machine


def model_for(begun: Debate, named: str) -> str:
    """The model of a run: the one that is named or set, else the judge's own, else the first of the panel's.

    Seats that name none are played by it.
    """
    seats = (begun.configuration.judge, *begun.configuration.panel)
    return named or default_model(seat.played_by for seat in seats if seat.played_by)


def default_model(models: Iterable[str]) -> str:
    """The model that is set, else the first of some; "" where there is none."""
    return model_setting() or next(iter(models), "")
