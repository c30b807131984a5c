"""Changes of a syntax tree: where in a function, and what becomes of it.

A place is named by what stands there and not by its text: `If 2` is the second `if` of the function in reading order,
`Call offer` the only call of `offer`, and `If 2.test` the condition. Kinds, fields and their order are those of `ast`.
What a function calls its variables and how its lines are broken does not matter.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

PLACE = re.compile(r"([A-Z]\w*|comprehension|keyword)(?: ([A-Za-z_]\w*))?(?: (\d+))?((?:\.\w+)*)")
HOLE = re.compile(r"\{([\w. ]*)\}")
OPERATORS: dict[str, type[ast.cmpop]] = {
    "==": ast.Eq,
    "!=": ast.NotEq,
    "<": ast.Lt,
    "<=": ast.LtE,
    ">": ast.Gt,
    ">=": ast.GtE,
    "is": ast.Is,
    "is not": ast.IsNot,
    "in": ast.In,
    "not in": ast.NotIn,
}


@dataclass(frozen=True)
class Spot:
    """A node, and the field of the node above that it stands in."""

    above: Spot | None
    field: str
    index: int | None
    node: Any

    def put(self, *nodes: ast.AST) -> None:
        """Put other nodes in its place: one, or in a list as many as there are."""
        assert self.above is not None
        if self.index is None:
            (node,) = nodes
            setattr(self.above.node, self.field, node)
            return
        siblings = getattr(self.above.node, self.field)
        siblings[self.index : self.index + 1] = nodes
        if not siblings and self.field in ("body", "handlers", "finalbody"):
            siblings.append(ast.Pass())

    def below(self, steps: str) -> Spot:
        """The spot that is so many fields further down."""
        spot = self
        for step in filter(None, steps.split(".")):
            if step.isdigit():
                spot = Spot(spot.above, spot.field, int(step), spot.node[int(step)])
            else:
                spot = Spot(spot, step, None, getattr(spot.node, step))
        return spot


Change = Callable[[Spot], None]


def spots(spot: Spot) -> Iterator[Spot]:
    """A spot and all below it, in reading order."""
    yield spot
    for field, value in ast.iter_fields(spot.node):
        if isinstance(value, ast.AST):
            yield from spots(Spot(spot, field, None, value))
        elif isinstance(value, list):
            for index, node in enumerate(value):
                if isinstance(node, ast.AST):
                    yield from spots(Spot(spot, field, index, node))


def find_function(module: ast.Module, path: str) -> Spot:
    """The function, method or class of this dotted name."""
    spot = Spot(None, "", None, module)
    for name in path.split("."):
        named = [
            Spot(spot, "body", index, node)
            for index, node in enumerate(spot.node.body)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == name
        ]
        if len(named) != 1:
            raise ValueError(f"there are {len(named)} functions or classes {path}, not one")
        (spot,) = named
    return spot


def find_place(function: Spot, place: str) -> Spot:
    """The one place of a function that has this name."""
    found = PLACE.fullmatch(place)
    if found is None:
        raise ValueError(f"{place!r} is not the name of a place, such as 'If 2' or 'Call offer.args.0'")
    kind, called, number, steps = found.groups()
    there = [spot for spot in spots(function) if type(spot.node).__name__ == kind and called in (None, _called(spot))]
    if len(there) < int(number or 1) or (number is None and len(there) > 1):
        raise ValueError(f"{function.node.name} has {len(there)} places like {place!r}; name one of them by its number")
    return there[int(number or 1) - 1].below(steps)


def _called(spot: Spot) -> str:
    return getattr(spot.node.func, "attr", getattr(spot.node.func, "id", "")) if isinstance(spot.node, ast.Call) else ""


def drop(spot: Spot) -> None:
    """It is not there: a statement (or the one that a call is), an argument, an operand."""
    if spot.above is not None and isinstance(spot.above.node, ast.Expr):
        spot = spot.above
    spot.put()
    if spot.above is not None and isinstance(spot.above.node, ast.BoolOp) and len(spot.above.node.values) == 1:
        spot.above.put(spot.above.node.values[0])


def always(spot: Spot) -> None:
    """It is true."""
    spot.put(ast.Constant(True))


def never(spot: Spot) -> None:
    """It is false."""
    spot.put(ast.Constant(False))


def unconditional(spot: Spot) -> None:
    """What an `if` does is done in any case; a last `elif` becomes an `else`."""
    spot.put(*spot.node.body)


def go_on(spot: Spot) -> None:
    """The loop goes on instead."""
    spot.put(ast.Continue())


def replace(spot: Spot) -> None:
    """What would be added takes the place of what was there."""
    spot.put(ast.Assign([spot.node.target], spot.node.value))


def prepend(spot: Spot) -> None:
    """What would be added comes first."""
    target = spot.node.target
    before, after = ast.Starred(spot.node.value, ast.Load()), ast.Starred(ast.Name(target.id, ast.Load()), ast.Load())
    spot.put(ast.Assign([target], ast.List([before, after], ast.Load())))


def exchange(spot: Spot) -> None:
    """A statement changes places with the next one; a call stands for its statement."""
    while spot.index is None:
        assert spot.above is not None
        spot = spot.above
    assert spot.above is not None
    siblings, here = getattr(spot.above.node, spot.field), spot.index
    siblings[here : here + 2] = reversed(siblings[here : here + 2])


def constant(value: object) -> Change:
    """It is this value, whatever it was worked out from."""
    return lambda spot: spot.put(ast.parse(repr(value), mode="eval").body)


def compare(operator: str, number: int = 0) -> Change:
    """It compares in another way."""

    def swap(spot: Spot) -> None:
        spot.node.ops[number] = OPERATORS[operator]()

    return swap


def named(name: str) -> Change:
    """It is another function, attribute or constant."""

    def rename(spot: Spot) -> None:
        setattr(spot.node, "attr" if isinstance(spot.node, ast.Attribute) else "id", name)

    return rename


def part(steps: str) -> Change:
    """Of the whole only this part is left."""
    return lambda spot: spot.put(spot.below(steps).node)


def becomes(template: str) -> Change:
    """It is another expression.

    `{}` stands for what it was, `{left}` for that part of it, and `{Call offer.args.0}` for what is in another place.
    """

    def change(spot: Spot) -> None:
        names = dict.fromkeys(HOLE.findall(template))
        filling = {f"hole_{number}": name for number, name in enumerate(names)}
        text = HOLE.sub(lambda hole: next(key for key, name in filling.items() if name == hole[1]), template)
        parts = {key: _seen_from(spot, name).node for key, name in filling.items()}
        spot.put(_Filling(parts).visit(ast.parse(text, mode="eval").body))

    return change


def _seen_from(spot: Spot, name: str) -> Spot:
    if not name[:1].isupper():
        return spot.below(name)
    function = spot
    while not isinstance(function.node, ast.FunctionDef | ast.AsyncFunctionDef):
        assert function.above is not None
        function = function.above
    return find_place(function, name)


class _Filling(ast.NodeTransformer):
    def __init__(self, parts: dict[str, ast.AST]) -> None:
        self._parts = parts

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self._parts.get(node.id, node)
