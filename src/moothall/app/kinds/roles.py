"""Files of roles on the disk, and other files in JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from moothall.errors import DefinitionError
from moothall.machines.workflow.document import LARGEST, Document, read


def document_at(path: Path) -> Document:
    """The content of a file, as far as it can be read."""
    try:
        with path.open("rb") as file:
            return read(file.read(LARGEST + 1))
    except OSError as error:
        raise DefinitionError(f"{path} cannot be read: {error.strerror}") from error


def roles_in(path: str) -> dict[str, Any]:
    """The roles of a file, as they stand there; none where no file is named."""
    if not path:
        return {}
    document = document_at(Path(path))
    if document.problems:
        first = document.problems[0]
        raise DefinitionError(f"{path}, line {first.line}: {first.why}; {first.remedy}")
    if not isinstance(document.value, dict):
        raise DefinitionError(f"{path}: a file of roles is an object: names, and what each role is")
    return document.value
