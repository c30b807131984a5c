"""Definition files as they are read from the disk: JSON or YAML, with the line of every value.

Kinds say what a file means, and by its content whose it is. What two readers could understand differently is a problem
in both languages: a key that stands twice, a value that JSON does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from os.path import isfile
from pathlib import Path
from typing import Any

from moothall.errors import DefinitionError
from moothall.machines.workflow.document import DEEPEST, LARGEST, Document, Problem, escape_key, read

YAML = (".yaml", ".yml")
ENDINGS = (".json", *YAML)


def is_definition(source: str) -> bool:
    """Whether a source is a file that may define or configure something."""
    return source.endswith(ENDINGS) and isfile(source)


def read_document(path: Path, what: str = "the file") -> Document:
    """What a file says, as far as it can be read."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise DefinitionError(f"{what} {path} cannot be read: {error.strerror}") from error
    return _read_yaml(content) if path.suffix in YAML else read(content)


def _read_yaml(content: bytes) -> Document:
    import yaml  # most files are JSON

    if len(content) > LARGEST:
        return _unread("E_LIMIT_SIZE", f"it has {len(content)} bytes", f"keep it below {LARGEST} bytes", 0)
    try:
        node = yaml.compose(content.decode("utf-8-sig"), Loader=yaml.SafeLoader)
    except UnicodeDecodeError:
        return _unread("E_ENCODING", "it is not UTF-8", "save the file as UTF-8", 1)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        why = " ".join(str(getattr(error, "problem", None) or error).split())
        return _unread("E_YAML", f"it is not YAML: {why}", "correct the text around it", mark.line + 1 if mark else 1)
    except RecursionError:
        return _unread("E_LIMIT_DEPTH", f"more than {DEEPEST} levels stand inside each other", "make it flatter", 1)
    reading = _YamlReading()
    value = None if node is None else reading.value(node, "", 0)
    return Document(value, reading.lines, tuple(reading.problems))


class _YamlReading:
    """Turns nodes of YAML into what JSON could say, and keeps where each stands."""

    def __init__(self) -> None:
        self.lines: dict[str, int] = {}
        self.problems: list[Problem] = []
        self._left = 150_000

    def value(self, node: Any, pointer: str, depth: int) -> Any:
        """The value of a node; an alias is read again at every place, so a bomb of aliases runs into the limit."""
        import yaml

        line = node.start_mark.line + 1
        self.lines.setdefault(pointer, line)
        self._left -= 1
        if depth > DEEPEST or self._left < 0:
            if not self.problems:
                why = "it is too deep or too large"
                self.problems.append(Problem("error", "E_LIMIT_SIZE", pointer, why, "make it smaller", line))
            return None
        if isinstance(node, yaml.MappingNode):
            return dict(self._items(node, pointer, depth))
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, f"{pointer}/{index}", depth + 1) for index, item in enumerate(node.value)]
        return self._scalar(node, pointer, line)

    def _items(self, node: Any, pointer: str, depth: int) -> Iterator[tuple[str, Any]]:
        for key_node, item in node.value:
            key, line = str(key_node.value), key_node.start_mark.line + 1
            inside = f"{pointer}/{escape_key(key)}"
            if inside in self.lines:
                why = f"{inside} stands on line {self.lines[inside]} and again on line {line}"
                self.problems.append(Problem("error", "E_DUP_KEY", inside, why, "keep one of them", line))
            self.lines[inside] = line
            yield key, self.value(item, inside, depth + 1)

    def _scalar(self, node: Any, pointer: str, line: int) -> Any:
        kind = node.tag.rpartition(":")[2]
        try:
            return _SCALARS[kind](node.value)
        except (KeyError, ValueError):
            why = f"{node.value[:40]!r} is a {kind}, which JSON does not have"
            self.problems.append(Problem("error", "E_YAML", pointer, why, "write it in quotes", line))
            return None


def _whole(text: str) -> int:
    return int(text.replace("_", ""), 10)


def _finite(text: str) -> float:
    value = float(text.replace("_", ""))
    if value - value != 0:
        raise ValueError(text)
    return value


_SCALARS: Mapping[str, Callable[[str], Any]] = {
    "str": str,
    "int": _whole,
    "float": _finite,
    "bool": lambda text: text.lower() in ("true", "yes", "on"),
    "null": lambda text: None,
}


def _unread(code: str, why: str, remedy: str, line: int) -> Document:
    return Document(None, {}, (Problem("error", code, "", why, remedy, line),))
