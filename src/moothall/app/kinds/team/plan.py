"""`!plan`: a workflow file is drafted from a text, so that it can be checked, drawn and approved before it runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

from moothall.app.kinds.workflow.files import template
from moothall.errors import DefinitionError


def draft_plan(text: str, folder: str) -> Path:
    """Draft a workflow and write it into a folder; its name is made of the first words of the text."""
    words = re.findall(r"[a-z0-9]+", text.lower())[:4] or ["plan"]
    name = "plan_" + "_".join(words)
    plain = json.loads(template(name))
    for workflow in plain if isinstance(plain, list) else [plain]:
        workflow["description"] = f"Drafted for: {text[:200]}"
    path = Path(folder or ".").resolve() / f"{name}.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(plain, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise DefinitionError(f"the draft {path} cannot be written: {error.strerror}") from error
    return path
