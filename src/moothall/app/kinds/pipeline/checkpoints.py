"""Checkpoints: a view of a pipeline's states as a JSON file, whole or not at all.

A run needs none of this, its journal is kept by the store; it is for state machines that are driven by hand.
"""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moothall.app.kinds.pipeline.states import OrchestrationState, OrchestrationStateMachine, StateTransition
from moothall.errors import EffectFailed, Refused
from moothall.kernel.codec import decode, encode

FILE = "state_machine.json"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What is kept of a view of states."""

    current_state: OrchestrationState
    iteration_count: int
    max_iterations: int
    history: list[StateTransition]


class CheckpointManager:
    """Keeps a state machine in `state_machine.json` of a folder, or in the file that is named."""

    def __init__(self, place: str | Path) -> None:
        path = Path(place)
        self.path = path if path.suffix == ".json" else path / FILE

    def save_state_machine(self, state_machine: OrchestrationStateMachine) -> None:
        """Keep a state machine with its history, contexts and figures."""
        kept = Checkpoint(
            state_machine.current_state,
            state_machine.iteration_count,
            state_machine.max_iterations,
            state_machine.history,
        )
        try:
            self._replace(json.dumps(encode(kept), ensure_ascii=False, indent=2))
        except OSError as error:
            raise EffectFailed(f"{self.path}: the checkpoint cannot be written: {error.strerror}") from error

    def _replace(self, text: str) -> None:
        """Write beside the file and put it in its place when it is on the disk."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_name(f"{self.path.name}.{secrets.token_hex(4)}")
        try:
            with beside.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self.path)
        finally:
            beside.unlink(missing_ok=True)

    def load_state_machine(self) -> OrchestrationStateMachine | None:
        """The state machine that was kept last; None where none was."""
        try:
            plain: Any = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise EffectFailed(f"{self.path}: the checkpoint cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise Refused(f"{self.path} is not a checkpoint: {error}") from error
        kept = decode(Checkpoint, plain, str(self.path))
        found = OrchestrationStateMachine(kept.max_iterations)
        found.current_state, found.iteration_count = kept.current_state, kept.iteration_count
        found.history = kept.history
        return found
