"""The guard language: its syntax tree and its parser.

A pure expression over event fields, variables, enum values and rules. A bare name is a variable,
`event.x` a field of the event, `other.x` a field of the event compared with, `rule.f(a, b)` a pure
algorithm, `guard.x` or `guard.MACHINE.x` a named guard, `Enum.VALUE` an enum's number, `constant.X` a
constant. Bindings also read `header.x` and `body.x` of a message, `header` itself, and `local.x` or
`local.f(a)` of the role. There are
integers, texts, `true`, `false`, `none` and `unknown`; == != < <= > >= in; and, or, not; + - *;
`a if c else b`; in systems `all`, `any`, `set` and `list` over the instances of a party; and the functions
max, min, size, first (the first that is not none), only (a set of one),
union, common and without (of two sets), set and elements (of a list; elements of none are an empty set),
get, put and drop (of a map: the value of a key or none, one more entry, the entries without some keys), part,
joined and item (of lists and bytes: from one place to before another, one after the other, what stands at a
place or none), byte (a number as one byte). The
syntax is a subset of Python's, read by its parser and strictly white-listed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from replispec.compiler.model.message import Place, SpecificationError

LENGTH_MAX: Final = 2000
"""Characters of one expression: more is not readable."""

FUNCTIONS: Final = {
    "max": 2,
    "min": 2,
    "size": 1,
    "first": 2,
    "only": 1,
    "text": 1,
    "union": 2,
    "common": 2,
    "without": 2,
    "set": 1,
    "elements": 1,
    "get": 2,
    "put": 3,
    "drop": 2,
    "part": 3,
    "joined": 2,
    "item": 2,
    "byte": 1,
    "listed": 1,
}
"""Functions of the language with the number of their arguments."""
SOURCES: Final = ("header", "body", "local")
"""What bindings read beside the event and the variables."""


class Expression:
    """Base of all nodes; nodes are immutable and compare by value."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Literal(Expression):
    """An integer, a text, a truth value, or none."""

    value: int | str | bool | None


@dataclass(frozen=True, slots=True)
class UnknownLiteral(Expression):
    """`unknown`: what was not seen."""


@dataclass(frozen=True, slots=True)
class Variable(Expression):
    """A variable of the machine or invariant."""

    name: str


@dataclass(frozen=True, slots=True)
class EventField(Expression):
    """A field of the event, or with `of` "other", of the event that it is compared with."""

    name: str
    of: str = "event"


@dataclass(frozen=True, slots=True)
class SourceField(Expression):
    """A field of what an event is made of: `of` is header, body or local."""

    name: str
    of: str


@dataclass(frozen=True, slots=True)
class EnumMember(Expression):
    """A value of an enum of the specification."""

    enum: str
    member: str


@dataclass(frozen=True, slots=True)
class ConstantName(Expression):
    """A constant of the specification."""

    name: str


@dataclass(frozen=True, slots=True)
class LocalCall(Expression):
    """A question that only the role can answer."""

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Rule(Expression):
    """A call of a pure algorithm."""

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Function(Expression):
    """A call of a function of the language."""

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class GuardName(Expression):
    """A named guard; `machine` is empty for one of the same machine."""

    machine: str
    name: str


@dataclass(frozen=True, slots=True)
class LetName(Expression):
    """The name of an expression that a machine says more than once; replaced when it is read."""

    name: str


@dataclass(frozen=True, slots=True)
class PartName(Expression):
    """What a system reads of an instance: `self.number`, `self.KEPT`, `self.MACHINE.VARIABLE`, or whether a
    machine is in a state, `self.MACHINE.STATE`. The first name is that of the instance.

    `peer` names another instance where the machine is one for each connection: `self.MACHINE[peer].STATE`.
    """

    names: tuple[str, ...]
    peer: str = ""


@dataclass(frozen=True, slots=True)
class ForEach(Expression):
    """`all`, `any`, `set` or `list` of what `of` is for every instance `name` of a party.

    Only instances count for which `condition` holds.
    """

    word: str
    of: Expression
    name: str
    party: str
    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class Choice(Expression):
    """The right side of `in`: constants in brackets."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Compare(Expression):
    """A comparison: == != < <= > >= in, not in."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Logic(Expression):
    """`and` or `or` of two or more parts, from left to right."""

    operator: str
    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Conditional(Expression):
    """`then` when the condition holds, else `otherwise`."""

    condition: Expression
    then: Expression
    otherwise: Expression


@dataclass(frozen=True, slots=True)
class Not(Expression):
    """The contrary."""

    part: Expression


@dataclass(frozen=True, slots=True)
class Arithmetic(Expression):
    """+ - or * of two integers."""

    operator: str
    left: Expression
    right: Expression


def children(node: Expression) -> Iterator[tuple[str, int, Expression]]:
    """(field, index or -1, child) of every direct child."""
    for each in fields(node):  # type: ignore[arg-type]  # every node is a dataclass
        value = getattr(node, each.name)
        if isinstance(value, Expression):
            yield each.name, -1, value
        elif isinstance(value, tuple):
            for index, item in enumerate(value):
                if isinstance(item, Expression):
                    yield each.name, index, item


def walk(node: Expression) -> Iterator[Expression]:
    """The node and everything below it."""
    yield node
    for _, _, child in children(node):
        yield from walk(child)


def with_guards(node: Expression, guards: Mapping[str, Expression]) -> Expression:
    """The expression with the names of the machine's own guards replaced by what they stand for."""
    if isinstance(node, GuardName) and not node.machine and node.name in guards:
        return with_guards(guards[node.name], guards)
    return _changed(node, lambda child: with_guards(child, guards))


def in_order(fields: Mapping[str, Expression]) -> Iterator[str]:
    """The names of an event's fields, each after those that it is made of; without any made of themselves."""
    waiting = {
        name: {part.name for part in walk(node) if isinstance(part, EventField)}
        for name, node in fields.items()
    }
    while ready := [name for name, needed in waiting.items() if not needed & waiting.keys()]:
        for name in ready:
            del waiting[name]
            yield name


def with_lets(node: Expression, lets: Mapping[str, Expression]) -> Expression:
    """The expression with the names under `let` replaced by what they stand for, where they are known."""
    if isinstance(node, LetName):
        return lets.get(node.name, node)
    return _changed(node, lambda child: with_lets(child, lets))


def _changed(node: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """The node with every child changed."""
    changes: dict[str, Any] = {}
    for name, index, child in children(node):
        replaced = change(child)
        if index < 0:
            changes[name] = replaced
        else:
            changes[name] = (*changes.get(name, ()), replaced)
    return replace(node, **changes) if changes else node  # type: ignore[type-var]  # every node is a dataclass


_COMPARE: Final = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not in",
}
_ARITHMETIC: Final = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}
CONSTANTS: Final = {
    "true": Literal(True),
    "false": Literal(False),
    "none": Literal(None),
    "unknown": UnknownLiteral(),
}
_ADVICE = "an expression has names, event.x, rule.f(..), numbers, texts, comparisons, and/or/not, + - *"

_DOTS: Final = "only event., other., guard., let., constant. and Enum. have a dot"


def parse(text: str, place: Place, instances: Collection[str] = ()) -> Expression:
    """The tree of `text`; `instances` are the names of instances that a system may read there.

    Raises SpecificationError for everything outside the language.
    """
    if len(text) > LENGTH_MAX:
        raise SpecificationError(
            place, f"an expression of {len(text)} characters", "split it into named guards"
        )
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else type(error).__name__
        raise SpecificationError(place, f"{text!r} is no expression ({reason})", _ADVICE) from error
    return _Parser(text.strip(), place, frozenset(instances)).node(tree.body)


class _Parser:
    def __init__(self, text: str, place: Place, instances: frozenset[str]) -> None:
        self._text = text
        self._place = place
        self._instances = instances

    def _refused(self, node: ast.AST, fault: str, advice: str = _ADVICE) -> SpecificationError:
        part = ast.get_source_segment(self._text, node) or self._text
        return SpecificationError(self._place, f"{part!r} {fault}", advice)

    def node(self, node: ast.expr) -> Expression:
        """The tree of one Python node."""
        match node:
            case ast.Constant():
                return self._constant(node)
            case ast.Name(id=name):
                return CONSTANTS.get(name, Variable(name))
            case ast.Attribute():
                return self._dotted(node)
            case ast.Call():
                return self._call(node)
            case ast.Compare():
                return self._compare(node)
            case ast.BoolOp(op=operator, values=values):
                word = "and" if isinstance(operator, ast.And) else "or"
                return Logic(word, tuple(map(self.node, values)))
            case ast.IfExp(test=test, body=body, orelse=otherwise):
                return Conditional(self.node(test), self.node(body), self.node(otherwise))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return Not(self.node(operand))
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)) if value is not True:
                return Literal(-value)
            case ast.BinOp(op=operator, left=left, right=right) if type(operator) in _ARITHMETIC:
                return Arithmetic(_ARITHMETIC[type(operator)], self.node(left), self.node(right))
        raise self._refused(node, "is outside the guard language")

    def _constant(self, node: ast.Constant) -> Literal:
        value = node.value
        written = ast.get_source_segment(self._text, node) or ""
        if isinstance(value, str) and written[:1] in ("'", '"'):
            return Literal(value)
        if type(value) is int and written.isdigit():
            return Literal(value)
        raise self._refused(
            node, "is no value of the guard language", "use decimal numbers, texts, true, false or none"
        )

    def _dotted(self, node: ast.Attribute) -> Expression:
        names, peer = [node.attr], ""
        inner = node.value
        match inner:
            case ast.Subscript(value=ast.Attribute() as indexed, slice=ast.Name(id=name)) if (
                name in self._instances
            ):
                inner, peer = indexed, name
        while isinstance(inner, ast.Attribute):
            names.insert(0, inner.attr)
            inner = inner.value
        if not isinstance(inner, ast.Name):
            raise self._refused(
                node,
                "reaches into a value",
                _DOTS,
            )
        head = inner.id
        if head in self._instances:
            return PartName((head, *names), peer)
        if peer:
            raise self._refused(node, "is no name", _DOTS)
        if head in ("event", "other") and len(names) == 1:
            return EventField(names[0], head)
        if head in SOURCES and len(names) == 1:
            return SourceField(names[0], head)
        if head == "let" and len(names) == 1:
            return LetName(names[0])
        if head == "constant" and len(names) == 1:
            return ConstantName(names[0])
        if head == "guard" and len(names) <= 2:
            return GuardName(names[0] if len(names) == 2 else "", names[-1])
        if head[:1].isupper() and len(names) == 1:
            return EnumMember(head, names[0])
        raise self._refused(node, "is no name", self._instances_said() if self._instances else _DOTS)

    def _instances_said(self) -> str:
        """What has parts here, for who named something else."""
        known = ", ".join(sorted(self._instances))
        return f"here are {known}; of a party of several: for NAME in PARTY"

    def _for_each(self, word: str, node: ast.GeneratorExp) -> ForEach:
        match node.generators:
            case [ast.comprehension(target=ast.Name(id=name), iter=ast.Name(id=party), ifs=conditions)] if (
                len(conditions) <= 1
            ):
                inner = _Parser(self._text, self._place, self._instances | {name})
                condition = inner.node(conditions[0]) if conditions else None
                return ForEach(word, inner.node(node.elt), name, party, condition)
        raise self._refused(
            node, "names no instances", f"write {word}(CONDITION for NAME in PARTY if CONDITION)"
        )

    def _call(self, node: ast.Call) -> Expression:
        match node:
            case ast.Call(
                func=ast.Name(id="all" | "any" | "set" | "list" as word),
                args=[ast.GeneratorExp() as each],
                keywords=[],
            ) if self._instances:
                return self._for_each(word, each)
        arguments = tuple(map(self.node, node.args))
        if node.keywords:
            raise self._refused(node, "names its arguments", "give them by position")
        match node.func:
            case ast.Attribute(value=ast.Name(id="rule"), attr=name):
                return Rule(name, arguments)
            case ast.Attribute(value=ast.Name(id="local"), attr=name):
                return LocalCall(name, arguments)
            case ast.Name(id=name) if name in FUNCTIONS:
                if len(arguments) != FUNCTIONS[name]:
                    raise self._refused(
                        node, f"needs {FUNCTIONS[name]} arguments", f"see {name} in the specification"
                    )
                return Function(name, arguments)
        raise self._refused(
            node, "calls what cannot be called", f"call rule.NAME(..) or {', '.join(FUNCTIONS)}"
        )

    def _compare(self, node: ast.Compare) -> Expression:
        sides = [node.left, *node.comparators]
        parts = []
        for operator, left, right in zip(node.ops, sides, sides[1:], strict=False):
            if type(operator) not in _COMPARE:
                raise self._refused(node, "uses an operator outside the language", "compare with none by ==")
            word = _COMPARE[type(operator)]
            is_choice = word in ("in", "not in") and isinstance(right, ast.List | ast.Tuple | ast.Set)
            parts.append(
                Compare(word, self.node(left), self._choice(right) if is_choice else self.node(right))
            )
        return parts[0] if len(parts) == 1 else Logic("and", tuple(parts))

    def _choice(self, node: ast.expr) -> Choice:
        items = node.elts if isinstance(node, ast.List | ast.Tuple | ast.Set) else []
        found = tuple(map(self.node, items))
        if not found or not all(isinstance(item, Literal | EnumMember) for item in found):
            raise self._refused(
                node, "is no choice of constants", "write x in [1, 2] or x in [Enum.A, Enum.B]"
            )
        return Choice(found)
