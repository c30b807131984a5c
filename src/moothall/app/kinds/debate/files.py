"""Files around a debate: configurations in JSON or YAML, prompts that they name, answers, the problem itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from hashlib import file_digest
from importlib.resources import files
from os.path import isdir
from pathlib import Path
from typing import Any

from moothall.agents.ask import template_fields
from moothall.agents.roles import library_role
from moothall.app.kinds.document import read_document
from moothall.errors import DefinitionError, Refused
from moothall.kernel.frozen import Frozen
from moothall.machines.debate.definition import AgentConfig, Answers, Configuration, findings, read_configuration
from moothall.machines.debate.state import FileDigest
from moothall.machines.schema import NAME
from moothall.machines.workflow.document import LARGEST, Document, Problem

NAMED = re.compile(NAME)
MOST_FILES = 1_000

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
    document = read_document(path, what)
    if document.problems:
        first = document.problems[0]
        raise DefinitionError(f"{path}, line {first.line}: {first.why}; {first.remedy}")
    return document.value


class ReadConfig(Frozen):
    """A configuration, the prompt files that it names, by path as they are written there, and words about it."""

    configuration: Configuration
    prompts: Mapping[str, str]
    warnings: tuple[str, ...] = ()


def read_config(path: Path) -> ReadConfig:
    """The configuration in a file, or a word about the first thing that is wrong with it."""
    document = read_document(path, "the configuration")
    told = []
    for problem in problems_in(document, path.parent):
        place = f"{path}, line {problem.line}: {problem.pointer or '/'}"
        told.append(f"{place}: {problem.why}; {problem.remedy}")
        if problem.level == "error":
            raise DefinitionError(told[-1])
    configuration = read_configuration(document.value, str(path))
    return ReadConfig(configuration, prompts_of(configuration, path.parent), tuple(told))


def problems_in(document: Document, folder: Path) -> tuple[Problem, ...]:
    """Everything that is wrong with a configuration in a folder, each with its line, the errors first."""
    if document.problems:
        return document.problems
    problems = list(findings(document.value))
    if all(problem.level != "error" for problem in problems):
        problems += _problems_around(read_configuration(document.value), folder)
    problems.sort(key=lambda problem: problem.level)
    return tuple(replace(problem, line=document.line(problem.pointer)) for problem in problems)


def _problems_around(configuration: Configuration, folder: Path) -> Iterator[Problem]:
    """What is wrong with what a configuration names: roles, and files of prompts."""
    seats = [(f"/agents/{index}/role", agent) for index, agent in enumerate(configuration.agents)]
    for pointer, agent in (*seats, ("/judge/role", configuration.judge)):
        try:
            library_role(agent.role)
        except DefinitionError as error:
            why, _, remedy = str(error).partition("; ")
            yield Problem("error", "E_ROLE", pointer, why, remedy)
    try:
        prompts_of(configuration, folder)
    except DefinitionError as error:
        yield Problem("error", "E_PROMPT", "", str(error), "correct the path or the prompt")


def is_configuration(said: Any) -> bool:
    """Whether what a file says is a debate: it has how it runs, or a judge, or a panel and no states of a workflow."""
    if not isinstance(said, Mapping) or "workflow_name" in said or "states" in said:
        return False
    return "debate" in said or "judge" in said or isinstance(said.get("agents"), list)


def template(name: str) -> str:
    """A configuration to begin with."""
    if not NAMED.fullmatch(name):
        raise Refused(f"{name!r} cannot be a name here; use letters, digits, _ and -, a letter first")
    return files(__package__).joinpath("template.json").read_text(encoding="utf-8")


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
    """A panel by its roles, as `-a architect,kiss` or a form names them."""
    names = [name.strip() for name in roles.split(",") if name.strip()]
    if not names:
        raise DefinitionError("no agent is named; name roles, such as architect, performance, kiss")
    for name in names:
        library_role(name)
    seats = [
        f"{name}{names[:place].count(name) + 1}" if names.count(name) > 1 else name for place, name in enumerate(names)
    ]
    return tuple(AgentConfig(seat, seat, name) for seat, name in zip(seats, names, strict=True))


def choice_of(options: str) -> Answers:
    """A choice between options, as `--options A,B` names them."""
    named = tuple(option.strip() for option in options.split(",") if option.strip())
    if len(named) < 2:
        raise DefinitionError("a choice needs two options; name them with a comma between them, such as A, B")
    return Answers("choice", named)


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


def digests_of(folder: Path) -> tuple[FileDigest, ...]:
    """The files of a folder and of those inside, without hidden ones and links, each with the hash of its content."""
    if not isdir(folder):
        raise DefinitionError(f"there is no folder {folder}; name the folder with the files of the debate")
    files_inside = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    paths = sorted(path for path in files_inside if not _is_hidden(path.relative_to(folder)))
    if len(paths) > MOST_FILES:
        raise DefinitionError(f"{folder} has {len(paths)} files; name a folder with at most {MOST_FILES}")
    return tuple(FileDigest(path.relative_to(folder).as_posix(), _digest(path)) for path in paths)


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DefinitionError(f"the file {path} cannot be read: {error.strerror}") from error
