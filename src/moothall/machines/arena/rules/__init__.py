"""The static rules: what a plan may not do, read from its text before a person's time or a sandbox is spent.

They are a tripwire, not a boundary: whoever wants to get round them can, and the sandbox is what holds. So a rule that
cries wolf is worth no more than one that sleeps, and what is only mentioned (prose, comments, text that is echoed or
searched for, commit messages, prompts) is not done.

| rule | vetoes |
|---|---|
| `destructive-shell` | deletion that cannot be brought back, disks overwritten, fork bombs, a shutdown, a forced push |
| `privileged-container` | containers that may do what the host may |
| `docker-socket` | the socket of a container engine |
| `string-built-sql` | SQL put together from variables |
| `remote-code` | code that the plan does not show |
| `secret-exfiltration` | private keys and credentials read, the environment sent away |
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from moothall.errors import BadValue
from moothall.kernel.frozen import Frozen
from moothall.machines.arena.figures import field_of
from moothall.machines.arena.rules.code import read_code
from moothall.machines.arena.rules.containers import (
    CONTAINED,
    ENGINES,
    SOCKET,
    is_about_containers,
    nested_reasons,
    nested_texts,
    privileged_reasons,
    socket_reasons,
)
from moothall.machines.arena.rules.destructive import destructive_reasons
from moothall.machines.arena.rules.files import (
    just_commands,
    kind_of,
    make_commands,
    package_commands,
    pipeline_commands,
    read_nested,
    unit_commands,
)
from moothall.machines.arena.rules.programs import ORCHESTRATED, language_of
from moothall.machines.arena.rules.python_code import read_python
from moothall.machines.arena.rules.remote import remote_reasons
from moothall.machines.arena.rules.secrets import secret_in, secret_reasons
from moothall.machines.arena.rules.shell import Trace, is_env_file, trace
from moothall.machines.arena.rules.sql import shell_sql_reasons
from moothall.machines.arena.rules.texts import HOME, UNKNOWN, WORK

RULES = (
    "destructive-shell",
    "docker-socket",
    "privileged-container",
    "string-built-sql",
    "remote-code",
    "secret-exfiltration",
)
DEEPEST = 4
SHELL_TOOLS = re.compile(
    r"terminal|shell|bash|command|exec|(?:^|_)run(?:_|$)|(?:^|_)sh(?:_|$)|zsh|powershell", re.IGNORECASE
)
SEARCH_TOOLS = re.compile(r"search|grep|find|lookup|query_docs|web|ask|think|note|message|comment|issue", re.IGNORECASE)
SEND_TOOLS = re.compile(r"upload|post|http|send|mail", re.IGNORECASE)
READ_TOOLS = re.compile(r"read|open|cat|view|load|get|copy|fetch|" + SEND_TOOLS.pattern, re.IGNORECASE)
COMMAND_KEYS = frozenset(
    {"command", "cmd", "script", "commands", "shell", "command_line", "commandline", "bash", "args", "argv"}
)
PATH_KEYS = ("path", "file", "file_path", "filename", "filepath", "target_file", "source", "src")
CONTENT_KEYS = ("content", "contents", "text", "new_str", "new_text", "file_text", "insert_text", "body", "new_string")
SAID_KEYS = frozenset(
    {"pattern", "query", "message", "prompt", "description", "title", "comment", "summary", "question", "old_str"}
)

Reason = tuple[str, str]


class Violation(Frozen):
    """A rule that a task breaks, and why, in a sentence."""

    rule: str
    task: str
    reason: str


def static_rules(plan: object) -> list[Violation]:
    """What in a plan the static rules veto, in the order of its tasks; an empty list where nothing is wrong.

    A plan is a `Plan` or a mapping `{tasks: […]}` as an agent replies it.
    """
    tasks = field_of(plan, "tasks", None)
    if not isinstance(tasks, Sequence) or isinstance(tasks, str):
        raise BadValue("a plan has a list of tasks; this one has none")
    violations: list[Violation] = []
    for task in tasks:
        name = str(field_of(task, "id", ""))
        reasons = dict.fromkeys(task_reasons(task))
        violations += [Violation(rule, name, reason) for rule, reason in reasons]
        reverse = field_of(task, "reverse", None)
        if reverse is not None and not isinstance(reverse, str):
            undone = dict.fromkeys(task_reasons(reverse))
            violations += [Violation(rule, name, f"in its reverse, {reason}") for rule, reason in undone]
    return violations


def task_reasons(task: object) -> Iterator[Reason]:
    """What the rules say of one task."""
    match field_of(task, "kind", None):
        case "command":
            yield from shell_reasons(_text_of(field_of(task, "command", "")))
        case "edit":
            path, content = field_of(task, "path", ""), field_of(task, "content", "")
            yield from file_reasons(str(path or ""), _text_of(content))
        case "tool":
            yield from tool_reasons(str(field_of(task, "tool", "")), field_of(task, "arguments", {}))


def _text_of(value: Any) -> str:
    if isinstance(value, list | tuple):
        return shlex.join(str(word) for word in value)
    return value if isinstance(value, str) else ""


def shell_reasons(text: str, *, is_script: bool = False, depth: int = 0) -> Iterator[Reason]:
    """What the rules say of a shell text."""
    yield from told_reasons(trace(text, is_script=is_script), depth=depth)


def told_reasons(told: Trace, *, depth: int = 0) -> Iterator[Reason]:
    """What the rules say of all that a shell text would do."""
    for rule, reasons in (
        ("destructive-shell", destructive_reasons(told)),
        ("privileged-container", privileged_reasons(told)),
        ("docker-socket", socket_reasons(told)),
        ("string-built-sql", shell_sql_reasons(told)),
        ("remote-code", remote_reasons(told)),
        ("secret-exfiltration", secret_reasons(told)),
    ):
        yield from ((rule, reason) for reason in reasons)
    if depth >= DEEPEST:
        return
    for language, program in told.programs:
        yield from code_reasons(program.text, language_of(language) or language, depth=depth + 1)
    for path, content in told.written:
        yield from file_reasons(path.replace(WORK + "/", ""), content.text, depth=depth + 1)
    for command in told.commands:
        if command.name in ORCHESTRATED and command.input is not None and "\n" in command.input.text:
            yield from nested_file_reasons("stdin.yaml", "yaml", command.input.text)


def file_reasons(path: str, content: str, *, depth: int = 0) -> Iterator[Reason]:
    """What the rules say of a file's content."""
    kind = kind_of(path, content)
    if depth > DEEPEST or kind == "prose":
        return
    match kind:
        case "shell":
            yield from shell_reasons(content, is_script=True, depth=depth)
        case "make":
            yield from _several(make_commands(content), depth)
        case "just":
            yield from _several(just_commands(content), depth)
        case "unit":
            yield from _several(unit_commands(content), depth)
        case "dockerfile":
            # its paths are the image's, and so is what is run while it is built
            text = re.sub(r"(?m)^\s*#.*$", "", content)
            if SOCKET.search(text):
                yield "docker-socket", "the image names a container engine's socket"
        case "yaml" | "json" | "toml":
            yield from nested_file_reasons(path, kind, content, depth=depth)
        case "text":
            text = re.sub(r"(?m)^\s*[#;].*$", "", content)
            if SOCKET.search(text):
                yield "docker-socket", "the file names a container engine's socket"
        case _:
            yield from code_reasons(content, kind, depth=depth)


def _several(commands: Iterator[str], depth: int) -> Iterator[Reason]:
    for command in commands:
        yield from shell_reasons(command, is_script=True, depth=depth)


def nested_file_reasons(path: str, kind: str, content: str, *, depth: int = 0) -> Iterator[Reason]:
    """What the rules say of settings in YAML, JSON or TOML."""
    for document in read_nested(kind, content):
        if is_about_containers(path, document):
            yield from (("privileged-container", reason) for reason in nested_reasons(document))
        for key, text in nested_texts(document):
            if SOCKET.search(text) and key not in ("description", "run", "script", "message", "title"):
                yield "docker-socket", f"{key or 'the file'} names a container engine's socket"
        commands = pipeline_commands(path, document) if kind == "yaml" else package_commands(path, document)
        yield from _several(commands, depth + 1)


def code_reasons(content: str, language: str, *, depth: int = 0) -> Iterator[Reason]:
    """What the rules say of a program."""
    findings = read_python(content) if language == "python" else None
    found = findings if findings is not None else read_code(content, language)
    is_contained = CONTAINED.search(content) is not None
    yield from (reason for reason in found.reasons if is_contained or reason[0] != "privileged-container")
    if depth >= DEEPEST:
        return
    for text in found.shells:
        yield from shell_reasons(_as_shell(text), is_script=True, depth=depth + 1)
    for words in found.words:
        yield from shell_reasons(" ".join(_quote(word) for word in words), is_script=True, depth=depth + 1)


def _as_shell(text: str) -> str:
    """A computed text for a shell: signs for places become what a shell would read there."""
    return text.replace(HOME, "$HOME").replace(WORK, "$PWD")


def _quote(word: str) -> str:
    if word.startswith((HOME, WORK)):
        return '"' + _as_shell(word).replace('"', '\\"') + '"'
    return shlex.quote(word) if UNKNOWN not in word else f'"{word}"'


def tool_reasons(tool: str, arguments: Any) -> Iterator[Reason]:
    """What the rules say of a tool's call."""
    if not isinstance(arguments, Mapping):
        return
    is_search = SEARCH_TOOLS.search(tool) and not SHELL_TOOLS.search(tool)
    done = {key: value for key, value in arguments.items() if key.lower() not in SAID_KEYS}
    if is_about_containers(tool, done) and not is_search:
        yield from (("privileged-container", reason) for reason in nested_reasons(done, of_tool=True))
    path = next((arguments[key] for key in PATH_KEYS if isinstance(arguments.get(key), str)), "")
    content = next((arguments[key] for key in CONTENT_KEYS if isinstance(arguments.get(key), str)), None)
    if path and content is not None and not SHELL_TOOLS.search(tool):
        yield from file_reasons(path, content)
        return
    if is_search:
        return
    for key, value in arguments.items():
        is_command = key.lower() in COMMAND_KEYS or (SHELL_TOOLS.search(tool) and key in ("input", "code"))
        if is_command and "image" not in arguments and (text := _text_of(value)):
            yield from shell_reasons(f"{tool} {text}" if tool in ENGINES and not text.startswith(tool) else text)
        elif key.lower() not in SAID_KEYS:
            yield from (
                ("docker-socket", f"the argument {key} names a container engine's socket")
                for _, text in nested_texts(value)
                if SOCKET.search(text)
            )
    if READ_TOOLS.search(tool):
        for _, text in nested_texts(done):
            if secret := secret_in(text):
                yield "secret-exfiltration", f"the tool {tool} reads {secret}"
            elif SEND_TOOLS.search(tool) and is_env_file(text):
                yield "secret-exfiltration", f"the tool {tool} sends {text}"
