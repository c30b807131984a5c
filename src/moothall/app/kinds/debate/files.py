"""Files around a debate: configurations in JSON or YAML, prompts that they name, answers, the problem itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from moothall.agents.ask import template_fields
from moothall.agents.roles import library_role
from moothall.errors import DefinitionError
from moothall.machines.debate.definition import AgentConfig, Configuration, read_configuration
from moothall.machines.workflow.document import LARGEST

FIELDS = {
    "clarification": frozenset(("problem", "context", "clarifications", "steering", "most")),
    "summary": frozenset(("problem", "clarifications", "steering", "agent", "most", "summary", "history")),
}
"""What prompts of one's own may name in braces."""


def read_text(path: Path, what: str) -> str:
    """The text of a file, or why it cannot be had."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise DefinitionError(f"{what} {path} cannot be read: {error.strerror}") from error
    if len(content) > LARGEST:
        raise DefinitionError(f"{what} {path} is larger than {LARGEST} bytes; shorten it")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DefinitionError(f"{what} {path} is not UTF-8; convert it") from error


def read_plain(path: Path, what: str) -> Any:
    """What a JSON or YAML file says."""
    text = read_text(path, what)
    if path.suffix in (".yaml", ".yml"):
        return _read_yaml(text, path, what)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DefinitionError(f"{what} {path} is not JSON: {error}") from error


def _read_yaml(text: str, path: Path, what: str) -> Any:
    import yaml  # most configurations are JSON

    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise DefinitionError(f"{what} {path} is not YAML: {' '.join(str(error).split())}") from error


def read_config(path: Path) -> tuple[Configuration, Mapping[str, str]]:
    """A configuration and the prompt files that it names, by path as they are written there."""
    configuration = read_configuration(read_plain(path, "the configuration"), str(path))
    return configuration, prompts_of(configuration, path.parent)


def prompts_of(configuration: Configuration, folder: Path) -> dict[str, str]:
    """The texts of all prompt files of a configuration; a field in braces that nothing fills is refused."""
    prompts: dict[str, str] = {}
    for agent in (*configuration.agents, configuration.judge):
        prompts |= {path: read_text(folder / path, "the prompt") for path in (agent.systemPromptPath,) if path}
        summaries = [agent.summaryPromptPath, agent.summarization.promptPath if agent.summarization else ""]
        prompts |= _templates(folder, (agent.clarificationPromptPath,), "clarification")
        prompts |= _templates(folder, (*summaries, configuration.debate.summarization.promptPath), "summary")
    return prompts


def _templates(folder: Path, paths: tuple[str, ...], what: str) -> dict[str, str]:
    texts = {path: read_text(folder / path, "the prompt") for path in paths if path}
    for path, text in texts.items():
        if strange := sorted(set(template_fields(text, path)) - FIELDS[what]):
            known = ", ".join(sorted(FIELDS[what]))
            raise DefinitionError(f"the prompt {folder / path} names {{{strange[0]}}}; it may name {known}")
    return texts


def panel_of(roles: str) -> tuple[AgentConfig, ...]:
    """A panel by its roles, as `-a architect,kiss` names them."""
    names = [name.strip() for name in roles.split(",") if name.strip()]
    if not names:
        raise DefinitionError("no agent is named; write -a architect,performance,kiss")
    for name in names:
        library_role(name)
    seats = [
        f"{name}{names[:place].count(name) + 1}" if names.count(name) > 1 else name for place, name in enumerate(names)
    ]
    return tuple(AgentConfig(seat, seat, name) for seat, name in zip(seats, names, strict=True))


def read_answers(path: Path) -> dict[str, str]:
    """Answers by question: an object of texts, or a list of objects with `id` or `text`, and `answer`."""
    plain = read_plain(path, "the answers")
    if isinstance(plain, list):
        pairs = [
            (str(entry.get("id") or entry.get("text")), entry.get("answer"))
            for entry in plain
            if isinstance(entry, dict)
        ]
        plain = dict(pairs)
    if not isinstance(plain, dict) or not all(isinstance(answer, str) for answer in plain.values()):
        raise DefinitionError(f'{path}: answers are an object, such as {{"Which database?": "PostgreSQL", "q2": "NA"}}')
    return {str(key): answer for key, answer in plain.items()}
