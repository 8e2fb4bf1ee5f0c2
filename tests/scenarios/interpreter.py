"""A machine as its YAML says it, interpreted line by line: nothing here knows the compiler or what it made.

Expressions of the specification's language are nearly those of Python, so Python's own parser reads them.
"""

from __future__ import annotations

import ast
import functools
import inspect
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import Any

Document = Mapping[str, Any]
Table = dict[tuple[str, str], list[tuple[tuple[str, int], Document]]]

_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda item, items: item in items,
    ast.NotIn: lambda item, items: item not in items,
}
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "max": max,
    "min": min,
    "size": len,
    "first": lambda *values: next((each for each in values if each is not None), None),
    "only": lambda value: frozenset({value}),
    "listed": lambda value: (value,),
    "joined": lambda one, other: (*one, *other),
    "part": lambda items, first, end: items[max(first, 0) : max(end, 0)],
    "item": lambda items, place: items[place] if 0 <= place < len(items) else None,
    "union": operator.or_,
    "common": operator.and_,
    "without": operator.sub,
    "set": lambda items: None if items is None else frozenset(items),
    "elements": lambda items: frozenset(items or ()),
    "get": lambda entries, key: entries.get(key),
    "put": lambda entries, key, value: {**entries, key: value},
    "drop": lambda entries, keys: {key: value for key, value in entries.items() if key not in keys},
}
_EMPTY: Mapping[str, Any] = {
    "int32": 0,
    "int64": 0,
    "bool": False,
    "string": "",
    "set": frozenset(),
    "list": (),
    "map": MappingProxyType({}),
}
_CONSTANTS = {"none": None, "true": True, "false": False}


@functools.cache
def _parsed(text: str) -> ast.expr:
    return ast.parse(" ".join(text.split()), mode="eval").body


@dataclass(frozen=True)
class Scope:
    """What an expression may name: variables, fields of the event, guards, named expressions, algorithms."""

    variables: Mapping[str, Any]
    event: Mapping[str, Any]
    guards: Document
    rules: ModuleType
    named: Mapping[str, str] = field(default_factory=dict)

    def value(self, expression: object) -> Any:
        """What an expression of the specification is worth here."""
        return self._of(_parsed(str(expression).lower() if isinstance(expression, bool) else str(expression)))

    def _at(self, place: str, name: str) -> Any:
        match place:
            case "event":
                return self.event[name]
            case "guard" | "let":
                return self.value(self.guards[name]["if"] if place == "guard" else self.named[name])
            case "constant":
                return getattr(self._module("constants"), name)
        return getattr(getattr(self._module("codes"), place), name)

    def _module(self, name: str) -> ModuleType:
        family = self.rules.__name__.split(".")[2]
        return import_module(f"replispec.wire.{family}.{name}")

    def _of(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value):
                return value
            case ast.Name(name):
                return _CONSTANTS[name] if name in _CONSTANTS else self.variables[name]
            case ast.Attribute(ast.Name(place), name):
                return self._at(place, name)
            case ast.UnaryOp(sign, part):
                return not self._of(part) if isinstance(sign, ast.Not) else -self._of(part)
            case ast.BoolOp(word, parts):
                answers = (self._of(each) for each in parts)
                return all(answers) if isinstance(word, ast.And) else any(answers)
            case ast.Compare(left, [comparison], [right]):
                return _COMPARISONS[type(comparison)](self._of(left), self._of(right))
            case ast.IfExp(condition, then, otherwise):
                return self._of(then if self._of(condition) else otherwise)
            case ast.BinOp(left, arithmetic, right):
                return _ARITHMETIC[type(arithmetic)](self._of(left), self._of(right))
            case ast.Call(ast.Name(name), arguments):
                return _FUNCTIONS[name](*map(self._of, arguments))
            case ast.Call(ast.Attribute(ast.Name("rule"), name), arguments):
                rule = getattr(self.rules, name)
                given = zip(inspect.signature(rule).parameters, map(self._of, arguments), strict=True)
                return rule(**dict(given))
        raise AssertionError(ast.dump(node))


@dataclass(frozen=True)
class Taken:
    """What an event came to: the state and variables after it, and what the edge does and says. `edge` is its
    place in the YAML, (section, number), for whoever asks whether all of them were taken."""

    state: str
    variables: Mapping[str, Any]
    effects: tuple[str, ...]
    blames_peer: bool
    tolerated: str
    diverges: str
    arms: frozenset[str] = frozenset()
    cancels: frozenset[str] = frozenset()
    edge: tuple[str, int] = field(compare=False, default=("", 0))


@dataclass(frozen=True)
class Interpreted:
    """One machine as a document says it, with the overlays of these names upon it."""

    document: Document
    rules: ModuleType
    overlays: tuple[str, ...] = ()
    table: Table = field(init=False)

    def __post_init__(self) -> None:
        groups = self.document.get("groups", {})
        table = _table("transitions", self.document["transitions"], groups)
        for name in self.overlays:
            overlay = self.document["overlays"][name]
            removed = {
                (state, event)
                for item in overlay.get("remove", ())
                for state in _states(item["from"], groups)
                for event in _several(item["event"])
            }
            for pair in removed:
                table[pair] = []
            for pair, edges in _table(name, overlay.get("add", ()), groups).items():
                table[pair] = edges + table.get(pair, [])
        object.__setattr__(self, "table", table)

    @property
    def initial(self) -> dict[str, Any]:
        """What the machine remembers at its beginning."""
        found = {}
        for name, variable in self.document.get("variables", {}).items():
            kind, _, optional = variable["type"].partition(" or ")
            found[name] = variable.get("initial", None if optional else _EMPTY[kind.split()[0]])
        return found

    def step(
        self, state: str, variables: Mapping[str, Any], event: str, row: Mapping[str, Any]
    ) -> Taken | None:
        """What an event comes to; None when no edge is for it."""
        guards, named = self.document.get("guards", {}), self.document.get("let", {})
        scope = Scope(variables, row, guards, self.rules, named)
        edges = self.table.get((state, event), ())
        found = next(((place, edge) for place, edge in edges if scope.value(edge.get("if", True))), None)
        if found is None:
            return None
        place, edge = found
        changed = {name: scope.value(value) for name, value in edge.get("assign", {}).items()}
        after = state if edge["to"] == "same" else edge["to"]
        arms, cancels = self._timing(state, event, after, edge)
        return Taken(
            after,
            {**variables, **changed},
            tuple(each for each in edge.get("do", ()) if " " not in each),
            edge.get("blame") == "peer",
            edge.get("tolerated", ""),
            edge.get("diverges", ""),
            arms,
            cancels,
            place,
        )

    def _timing(
        self, state: str, event: str, after: str, edge: Document
    ) -> tuple[frozenset[str], frozenset[str]]:
        """The timers that an edge arms and cancels: those that it names, and those that run in states."""
        said = [each.split() for each in edge.get("do", ()) if " " in each]
        arms, cancels = ({name for word, name in said if word == wanted} for wanted in ("arm", "cancel"))
        for name, timer in self.document.get("timers", {}).items():
            runs = _states(timer.get("while", []), self.document.get("groups", {}))
            enters, stays = state not in runs, event in _several(timer.get("restarts", []))
            if after in runs and (enters or stays):
                arms.add(name)
            if (state in runs and after not in runs) or self.document["states"][after].get("final"):
                cancels.add(name)
        return frozenset(arms - cancels), frozenset(cancels)

    def fits(self, event: str, row: Mapping[str, Any]) -> bool:
        """Whether a message with these fields is this event, by its `where`."""
        where = self.document["events"][event].get("where")
        return where is None or bool(Scope({}, row, {}, self.rules).value(where))


def _table(
    section: str, edges: Any, groups: Document
) -> dict[tuple[str, str], list[tuple[tuple[str, int], Document]]]:
    table: dict[tuple[str, str], list[tuple[tuple[str, int], Document]]] = {}
    for number, edge in enumerate(edges):
        for state in _states(edge["from"], groups):
            for event in _several(edge["event"]):
                table.setdefault((state, event), []).append(((section, number), edge))
    return table


def _states(value: Any, groups: Document) -> list[Any]:
    """The states that are named, groups by their members."""
    return [state for name in _several(value) for state in groups.get(name, (name,))]


def _several(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else [value]
