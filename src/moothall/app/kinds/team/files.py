"""Team files: found by name or path, read, checked, and the prompts that they name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from os.path import exists, isfile, realpath
from pathlib import Path

from moothall.app.kinds.document import ENDINGS, YAML, read_document
from moothall.app.kinds.source import remember, unlike
from moothall.errors import DefinitionError, Refused
from moothall.kernel.frozen import Frozen
from moothall.kernel.machine import Machine
from moothall.machines.team.conversation import NAME, team_machine
from moothall.machines.team.definition import SHIPPED, Roster, Team, shipped_team, shipped_text, team_of
from moothall.machines.team.findings import findings
from moothall.machines.team.patterns import pattern_machine
from moothall.machines.team.prompt import has_shipped_prompt, persona_prompt, shipped_prompt
from moothall.machines.workflow.document import LARGEST, Document, Problem, read

DEFAULT = "studio"
PERSONA = "persona:"
"""What the names of prompts of personas begin with: `persona:SOURCE:ID`."""
Stamp = tuple[int, int]
_TEAM = (
    re.compile(rb'"team_name"'),
    re.compile(rb"""(?m)^(?:team_name|"team_name"|'team_name')\s*:|[{,]\s*"team_name"\s*:"""),
)
"""How a team file is known before it is read, in JSON and in YAML."""


class TeamFile(Frozen):
    """A team, where it is found again, and where its prompts are."""

    team: Team
    source: str
    folder: Path | None


def is_team_file(source: str) -> bool:
    """Whether a source is the path of a team file, by what stands in it."""
    if not source.endswith(ENDINGS):
        return False
    try:
        with Path(source).open("rb") as file:
            return _TEAM[source.endswith(YAML)].search(file.read(LARGEST)) is not None
    except OSError:
        return False


def source_of_team(name: str) -> str:
    """The source of a team that a person names: one that ships, or a file."""
    if name in SHIPPED:
        return NAME if name == DEFAULT else f"{NAME}-{name}"
    if is_team_file(name):
        return realpath(name)
    if exists(name):
        raise DefinitionError(_unlike_a_team(name))
    raise DefinitionError(
        f"there is no team {name!r}; there are {', '.join(SHIPPED)}, and files, such as ./team.json or ./team.yaml"
    )


def _unlike_a_team(name: str) -> str:
    if name.endswith(ENDINGS) and isfile(name):
        return unlike(name, "a team file")
    return f"{name} is not a team file, which ends in {', '.join(ENDINGS)}"


def team_file(source: str) -> TeamFile | None:
    """The team at a source; None where the source is none of a team."""
    name = DEFAULT if source == NAME else source.removeprefix(f"{NAME}-")
    if name in SHIPPED and (source == NAME or source != name):
        return TeamFile(shipped_team(name), name, None)
    if not is_team_file(source):
        return None
    path = Path(realpath(source))
    wrong = [problem for problem in problems_of(path) if problem.level == "error"]
    if wrong:
        what = f"{wrong[0].why}; {wrong[0].remedy}".rstrip(".")
        raise DefinitionError(f"{path}:{wrong[0].line}: {what}. `moot check {path.name}` lists everything")
    return TeamFile(team_of(document_of(path).value), str(path), path.parent)


def document_of(path: Path) -> Document:
    """What a team file says."""
    return read_document(path)


def problems_of(path: Path) -> tuple[Problem, ...]:
    """Everything that is wrong with a team file."""
    return findings(document_of(path), has_prompt=lambda name: _has_prompt(path.parent, name))


def _has_prompt(folder: Path, name: str) -> bool:
    return (folder / name).is_file() or has_shipped_prompt(name)


_machines: dict[str, tuple[Stamp, Machine]] = {}


def machine_of(source: str) -> Machine | None:
    """The machine of the team at a source; None where there is none."""
    stamp = _stamp(source)
    known = _machines.get(source)
    if known is not None and known[0] == stamp:
        return known[1]
    if (pattern := pattern_machine(source)) is not None:
        remember(pattern, source)
        return pattern
    found = team_file(source)
    if found is None:
        return None
    is_shipped = found.folder is None
    name = (NAME if found.source == DEFAULT else f"{NAME}-{found.source}") if is_shipped else found.team.team_name
    machine = team_machine(found.team, name, found.source)
    remember(machine, name if is_shipped else found.source)
    _machines[source] = (stamp, machine)
    return machine


def _stamp(source: str) -> Stamp:
    try:
        known = Path(source).stat()
    except OSError:
        return (0, 0)
    return (known.st_mtime_ns, known.st_size)


@lru_cache(maxsize=32)
def _roster(source: str, stamp: Stamp) -> tuple[Roster, Path | None]:
    found = TeamFile(shipped_team(source), source, None) if source in SHIPPED else team_file(source)
    if found is None:
        raise DefinitionError(f"there is no team file {source}")
    return Roster(found.team), found.folder


def roster_at(source: str) -> Roster:
    """The team at the source that its prompts name."""
    return _roster(source, _stamp(source))[0]


def roster_of(source: str) -> Roster:
    """The team at the source of its machine."""
    found = team_file(source)
    if found is None:
        raise DefinitionError(f"there is no team at {source}")
    return roster_at(found.source)


class Prompts(Mapping[str, str]):
    """Prompts by name. That of a persona is read when it is asked for the first time; `loaded` says whose were."""

    def __init__(self, fixed: Mapping[str, str]) -> None:
        self._fixed = fixed
        self.loaded: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        if name in self._fixed:
            return self._fixed[name]
        if not name.startswith(PERSONA):
            raise KeyError(name)
        if name not in self.loaded:
            source, _, persona = name.removeprefix(PERSONA).rpartition(":")
            self.loaded[name] = prompt_of(source, persona)
        return self.loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fixed)

    def __len__(self) -> int:
        return len(self._fixed)


def persona_name(source: str, persona: str) -> str:
    """What the prompt of a persona is called."""
    return f"{PERSONA}{source}:{persona}"


def prompt_of(source: str, persona: str) -> str:
    """The prompt of a persona, rendered once for as long as its files stay as they are."""
    roster, folder = _roster(source, _stamp(source))
    own = _stamp(str(folder / roster.personas[persona].prompt)) if folder is not None else (0, 0)
    return rendered_prompt(source, persona, (_stamp(source), own))


@lru_cache(maxsize=4096)
def rendered_prompt(source: str, persona: str, stamps: tuple[Stamp, Stamp]) -> str:
    """The prompt of a persona with its files in this state. How often one was rendered is counted by the cache."""
    return _escape_braces(_persona_text(source, persona))


def _persona_text(source: str, persona: str) -> str:
    roster, folder = _roster(source, _stamp(source))
    name = roster.personas[persona].prompt
    own = folder / name if folder is not None else None
    if own is not None and own.is_file():
        try:
            text = own.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise DefinitionError(f"the prompt {own} cannot be read: {error}") from error
    else:
        text = shipped_prompt(name)
    return persona_prompt(roster, persona, text)


def _escape_braces(text: str) -> str:
    """A text in which nothing is filled in."""
    return text.replace("{", "{{").replace("}", "}}")


def template(name: str) -> str:
    """A team to begin with."""
    plain = json.loads(shipped_text("studio_small"))
    text = json.dumps({**plain, "team_name": name}, indent=2, ensure_ascii=False) + "\n"
    wrong = [problem for problem in findings(read(text.encode())) if problem.level == "error"]
    if wrong:
        raise Refused(f"{wrong[0].why}; {wrong[0].remedy}")
    return text
