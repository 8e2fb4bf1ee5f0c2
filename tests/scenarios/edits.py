"""Every single edit of a machine that would change what it does, made on its YAML as read.

An edge left out or leading elsewhere, an effect or an assignment left out, the blame taken away, a guard
negated, without a part, or with another comparison, another beginning of a variable.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Path = tuple[str | int, ...]
_OTHER_COMPARISONS: dict[type[ast.cmpop], tuple[ast.cmpop, ...]] = {
    ast.Eq: (ast.NotEq(),),
    ast.NotEq: (ast.Eq(),),
    ast.Lt: (ast.LtE(), ast.GtE()),
    ast.LtE: (ast.Lt(), ast.Gt()),
    ast.Gt: (ast.GtE(), ast.LtE()),
    ast.GtE: (ast.Gt(), ast.Lt()),
    ast.In: (ast.NotIn(),),
    ast.NotIn: (ast.In(),),
}


@dataclass(frozen=True)
class Edit:
    """One change: what it is, for people, and the document with it."""

    name: str
    document: dict[str, Any]


def edits(document: dict[str, Any]) -> Iterator[Edit]:
    """All of them, in the order of the document."""
    entered = sorted({edge["to"] for edge in document["transitions"]} - {"same"})
    for path, edge in _edges(document):
        owner = f"{path[1]}: " if path[0] == "overlays" else ""
        name = f"{owner}{_list(edge['from'])} on {_list(edge['event'])} to {edge['to']}: "
        for says, change in _changes_of(edge, entered):
            yield _edited(document, path, name + says, change)
        for says, text in mutants(edge["if"]) if "if" in edge else ():
            yield _edited(document, path, name + says, _put("if", text))
    for name, guard in document.get("guards", {}).items():
        for says, text in mutants(guard["if"]):
            yield _edited(document, ("guards", name), f"guard {name}: {says}", _put("if", text))
    for name, text in document.get("let", {}).items():
        for says, mutant in mutants(text):
            if not says.startswith("negated"):
                yield _edited(document, ("let",), f"let {name}: {says}", _put(name, mutant))
    yield from _of_timers(document)
    for name, variable in document.get("variables", {}).items():
        if isinstance(variable.get("initial"), int):
            change = _put("initial", variable["initial"] + 1)
            yield _edited(document, ("variables", name), f"{name} begins elsewhere", change)


def _of_timers(document: dict[str, Any]) -> Iterator[Edit]:
    # What runs from the beginning is armed by no edge, so that no story tells of it.
    begins = next(name for name, state in document["states"].items() if state.get("initial"))
    groups = document.get("groups", {})
    for name, timer in document.get("timers", {}).items():
        runs = [state for each in _several(timer.get("while", [])) for state in groups.get(each, [each])]
        for key in {"while", "restarts"} & timer.keys() if begins not in runs else ():
            yield _edited(document, ("timers", name), f"timer {name} without {key}", _put(key, []))


def _edges(document: dict[str, Any]) -> Iterator[tuple[Path, dict[str, Any]]]:
    for number, edge in enumerate(document["transitions"]):
        yield ("transitions", number), edge
    for name, overlay in document.get("overlays", {}).items():
        for number, edge in enumerate(overlay.get("add", ())):
            yield ("overlays", name, "add", number), edge


Change = Callable[[dict[str, Any]], None]


def _changes_of(edge: dict[str, Any], entered: list[str]) -> Iterator[tuple[str, Change]]:
    yield "left out", _put("event", [])
    for state in entered:
        stays = edge["from"] if edge["to"] == "same" else edge["to"]
        if state != stays:
            yield f"leads to {state}", _put("to", state)
    for effect in edge.get("do", ()):
        yield f"does not {effect}", _put("do", [each for each in edge["do"] if each != effect])
    for name in edge.get("assign", {}):
        rest = {each: value for each, value in edge["assign"].items() if each != name}
        yield f"does not assign {name}", _put("assign", rest)
    for key in ("blame", "tolerated", "diverges"):
        if key in edge:
            yield f"without {key}", _put(key, "")


def _put(key: str, value: Any) -> Change:
    return lambda held: held.__setitem__(key, value)


def _edited(document: dict[str, Any], path: Path, name: str, change: Change) -> Edit:
    """A copy that shares everything with the document but what lies on the path."""
    root = held = dict(document)
    for step in path:
        inner = copy.copy(held[step])  # type: ignore[index]  # dicts by name, lists by number
        held[step] = inner  # type: ignore[index]
        held = inner
    change(held)
    return Edit(name, root)


def mutants(text: str) -> Iterator[tuple[str, str]]:
    """What may change in a condition, and the whole condition with it: negated, without a part, with `or` for
    `and`, with another comparison."""
    text = " ".join(str(text).split())
    yield "negated", f"not ({text})"
    whole = ast.parse(text, mode="eval").body
    for node in ast.walk(whole):
        for says, changed in _mutants_of(node):
            yield says, ast.unparse(_Replacing(node, changed).visit(copy.deepcopy(whole)))


def _mutants_of(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case ast.BoolOp(operator, parts):
            other = ast.And() if isinstance(operator, ast.Or) else ast.Or()
            yield f"{_word(other)} for {_word(operator)}", ast.BoolOp(other, parts)
            for number, part in enumerate(parts):
                rest = parts[:number] + parts[number + 1 :]
                says = f"without {ast.unparse(part)}"
                yield says, rest[0] if len(rest) == 1 else ast.BoolOp(operator, rest)
        case ast.Compare(left, [comparison], right):
            is_none = isinstance(right[0], ast.Name) and right[0].id == "none"
            others = _OTHER_COMPARISONS[type(comparison)]
            for other_way in others[:1] if is_none else others:
                changed = ast.Compare(left, [other_way], right)
                yield f"with {ast.unparse(changed)}", changed
        case ast.UnaryOp(ast.Not(), part):
            yield f"without not before {ast.unparse(part)}", part


def _word(operator: ast.boolop) -> str:
    return "and" if isinstance(operator, ast.And) else "or"


def _several(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _list(value: Any) -> str:
    return "/".join(value) if isinstance(value, list) else str(value)


class _Replacing(ast.NodeTransformer):
    """Puts another node in the place of one: they are told apart by where they begin and end."""

    def __init__(self, old: ast.AST, new: ast.expr) -> None:
        self._old, self._new = ast.dump(old, include_attributes=True), new

    def visit(self, node: ast.AST) -> ast.AST:
        if ast.dump(node, include_attributes=True) == self._old:
            return self._new
        result: ast.AST = self.generic_visit(node)
        return result
