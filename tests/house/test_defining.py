"""Text of ours becomes code in one place, where the rule for it stands."""

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "moothall"
MAKE_CODE = {"exec", "eval", "compile", "__import__"}


def makes_code(path: Path) -> bool:
    calls = (node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
    return any(isinstance(call, ast.Name) and call.id in MAKE_CODE for call in calls)


def test_text_becomes_code_in_one_place() -> None:
    found = [path.relative_to(SOURCE).as_posix() for path in sorted(SOURCE.rglob("*.py")) if makes_code(path)]
    assert found == ["kernel/generated.py"]
