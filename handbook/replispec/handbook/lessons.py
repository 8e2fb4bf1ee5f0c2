"""Steps in a teaching page, taken by the generated machine while the page is made.

A page holds blocks of YAML whose fence says `yaml play`:

    machine: FAMILY/MACHINE
    begin: {state: STATE, variables: {NAME: VALUE}}
    steps:
      - event: EVENT
        given: {FIELD: VALUE}
        says: why this happens
        state: STATE          # what the page claims: where the machine is then,
        becomes: {NAME: VALUE}    # the variables that changed, and what they are now,
        does: [EFFECT]        # and what it does

What is left out of `begin` and `given` is as at the machine's own beginning, or empty. A claim that is not
true of the machine is a LessonError: no page is made that says something else than the machine.
"""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any, Final

import yaml

from replispec.compiler.model.machine import MachineSpec
from replispec.handbook.places import Places, edge_rows, link
from replispec.runtime import families
from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from replispec.runtime.primitives.machines import Machine, Step, step

_BLOCK: Final = re.compile(
    r"^(?P<fence>```|~~~) *yaml +play *\n(?P<steps>.*?)^(?P=fence) *(?:\n|\Z)", re.DOTALL | re.MULTILINE
)
_ANY: Final = re.compile(r"^.*(?:`{3,}|~{3,})\W*yaml\s+play.*$", re.MULTILINE)
"""What looks like the beginning of a block, as Markdown may show it."""
_BLOCK_KEYS: Final = {"machine", "begin", "steps"}
_BEGIN_KEYS: Final = {"state", "variables"}
_KEYS: Final = {"event", "given", "says", "state", "becomes", "does"}
_EMPTY: Final[Mapping[type, Any]] = {int: 0, bool: False, str: "", bytes: b""}


class LessonError(Exception):
    """A teaching page says something else than the machine, or asks for what does not exist."""


def played(text: str, at: str, places: Places) -> str:
    """The page with a table for each block. Raises LessonError."""
    number = 0

    def block(match: re.Match[str]) -> str:
        nonlocal number
        number += 1
        place = f"{at}, block {number}"
        try:
            return "\n".join(_played(match["steps"], place, places)) + "\n"
        except (TypeError, AttributeError, ValueError, KeyError) as error:
            raise LessonError(f"{place}: a value has not the form that it must have: {error}") from error

    found = _BLOCK.sub(block, text)
    if (left := _ANY.search(found)) is not None:
        raise LessonError(f"{at}: {left[0].strip()!r} begins no block: it is indented, or never closed")
    return found


def _played(text: str, place: str, places: Places) -> Iterator[str]:
    try:
        block = yaml.safe_load(text)
        family, _, name = block["machine"].partition("/")
        begin, steps = block["begin"], block["steps"]
    except (yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise LessonError(f"{place}: not a block of machine, begin and steps: {error}") from error
    for keys, known in ((block, _BLOCK_KEYS), (begin, _BEGIN_KEYS)):
        if unknown := set(keys) - known:
            raise LessonError(f"{place}: unknown {', '.join(sorted(unknown))}")
    if family not in places.families or name not in places.families[family].spec.machines:
        raise LessonError(f"{place}: no machine {block['machine']!r}")
    machine: Machine[Any, Any] = families.wire(family, f"machines.{name}").MACHINE
    rules = _rules(family, place)
    hints = typing.get_type_hints(type(machine.variables))
    given = _values(begin.get("variables", {}), hints, f"{place}, begin")
    if begin.get("state") not in machine.states.__members__:
        raise LessonError(f"{place}: there is no state {begin.get('state')}")
    state, variables = machine.states[begin["state"]], dataclasses.replace(machine.variables, **given)
    page = f"{family}/machines/{name}"
    yield ""
    yield f"The machine {link(name, page)} begins in `{state.name}`{_told(given, ' with')}."
    yield from ("", "| | what happens | then it is in | and has | it does | clauses |", f"|{' --- |' * 6}")
    for number, each in enumerate(steps, 1):
        where = f"{place}, step {number}"
        taken = _taken(machine, rules, state, variables, each, where)
        after = {
            field.name: getattr(taken.variables, field.name)
            for field in dataclasses.fields(taken.variables)
            if getattr(taken.variables, field.name) != getattr(variables, field.name)
        }
        _compare(each, taken, after, hints, where)
        anchor = _anchor(places.families[family].spec.machines[name], machine, state, each["event"], taken)
        happens = f"**{each['event'].replace('_', ' ')}**{_told(each.get('given', {}), ':')}"
        cells = (
            str(number),
            f"{happens}<br>{each.get('says', '')}",
            link(f"`{taken.state.name}`", page, anchor),
            _told(after, "").strip(),
            ", ".join(effect.replace("_", " ") for effect in taken.effects),
            ", ".join(link(clause, f"{family}/clauses/{clause}") for clause in taken.edge.clauses),
        )
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
        state, variables = taken.state, taken.variables
    yield ""


def _rules(family: str, place: str) -> ModuleType:
    """The algorithms that the guards of a family's machines call; they are written in the runtime."""
    try:
        return import_module(f"replispec.runtime.{family}.rules")
    except ModuleNotFoundError as error:
        raise LessonError(f"{place}: {family} has no rules to play with") from error


def _taken(
    machine: Machine[Any, Any], rules: Any, state: Any, variables: Any, each: Mapping[str, Any], where: str
) -> Step[Any, Any]:
    if unknown := set(each) - _KEYS:
        raise LessonError(f"{where}: unknown {', '.join(sorted(unknown))}")
    kind = next((kind for kind, info in machine.events.items() if info.name == each.get("event")), None)
    if kind is None:
        raise LessonError(f"{where}: {machine.name} has no event {each.get('event')!r}")
    hints = _fields_of(kind)
    row = {name: _empty(hint) for name, hint in hints.items()}
    row |= _values(each.get("given", {}), hints, where)
    event = SimpleNamespace(**row)
    meant = machine.events[kind].where
    if meant is not None and not meant(machine.variables, event, rules):
        raise LessonError(f"{where}: with these fields it is not a {each['event']}")
    try:
        return step(machine, state, variables, event, rules, kind)
    except (LocalProtocolError, RemoteProtocolError) as error:
        raise LessonError(f"{where}: {error}") from error


def _compare(
    each: Mapping[str, Any],
    taken: Step[Any, Any],
    after: Mapping[str, Any],
    hints: Mapping[str, Any],
    where: str,
) -> None:
    claims = {
        "state": (each.get("state"), taken.state.name),
        "becomes": (_values(each.get("becomes", {}), hints, where), dict(after)),
        "does": (tuple(each.get("does", ())), tuple(taken.effects)),
    }
    for name, (claimed, found) in claims.items():
        if claimed != found:
            raise LessonError(f"{where}: the page says {name} {claimed!r}, the machine {found!r}")


def _anchor(
    spec: MachineSpec, machine: Machine[Any, Any], state: Any, event: str, taken: Step[Any, Any]
) -> str:
    """The line of the edge that was taken, in the table of edges: lines and edges of a state and an event are
    in one order."""
    lines = [
        row.anchor
        for row in edge_rows(spec)[0]
        if (row.state, row.event) == (state.name, event) and row.edge is not None
    ]
    kind = next(kind for kind, info in machine.events.items() if info.name == event)
    edges = machine.transitions[state, kind]
    return next(line for line, edge in zip(lines, edges, strict=True) if edge is taken.edge)


def _fields_of(kind: type) -> dict[str, Any]:
    """The fields of an event with their types: its own, or those of the messages that it stands for."""
    hints = typing.get_type_hints(kind)
    if "message" not in hints:
        return hints
    found: dict[str, Any] = {}
    for message in _alternatives(hints["message"]):
        found |= {name: hint for name, hint in typing.get_type_hints(message).items() if not _is_class(hint)}
    forwarded = {name: each.fget for name, each in vars(kind).items() if isinstance(each, property)}
    return found | {name: typing.get_type_hints(each)["return"] for name, each in forwarded.items()}


def _is_class(hint: Any) -> bool:
    return typing.get_origin(hint) is typing.ClassVar


def _alternatives(hint: Any) -> Sequence[Any]:
    of_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    return typing.get_args(hint) if of_union else (hint,)


def _values(given: Mapping[str, Any], hints: Mapping[str, Any], where: str) -> dict[str, Any]:
    if unknown := set(given) - set(hints):
        raise LessonError(f"{where}: there is no {', '.join(sorted(unknown))}: there are {', '.join(hints)}")
    return {name: _value(value, hints[name]) for name, value in given.items()}


def _value(value: Any, hint: Any) -> Any:
    """A value of YAML as one of this type: lists of messages, sets, numbers."""
    if value is None:
        return None
    kinds = [each for each in _alternatives(hint) if each is not type(None)]
    origin, arguments = typing.get_origin(kinds[0]) or kinds[0], typing.get_args(kinds[0])
    if dataclasses.is_dataclass(origin) and isinstance(origin, type):
        return origin(**_values(value, typing.get_type_hints(origin), origin.__name__))
    if isinstance(value, list):
        items = tuple(_value(each, arguments[0]) for each in value)
        return frozenset(items) if issubclass(origin, (frozenset, typing.AbstractSet)) else items
    if isinstance(value, dict):
        return {key: _value(each, arguments[1]) for key, each in value.items()}
    return value


def _empty(hint: Any) -> Any:
    kinds = _alternatives(hint)
    if type(None) in kinds:
        return None
    origin = typing.get_origin(kinds[0]) or kinds[0]
    if origin in _EMPTY:
        return _EMPTY[origin]
    if isinstance(origin, type) and issubclass(origin, typing.AbstractSet):
        return frozenset()
    return {} if isinstance(origin, type) and issubclass(origin, typing.Mapping) else ()


def _told(values: Mapping[str, Any], before: str) -> str:
    """Values in words, a message among them by its values alone."""
    told = ", ".join(f"`{name}` {_shown(value)}" for name, value in values.items())
    return f"{before} {told}" if told else ""


def _shown(value: Any) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case Mapping():
            return ", ".join(f"{key} {_shown(each)}" for key, each in value.items())
        case str() | int() | bytes():
            return str(value)
    if dataclasses.is_dataclass(value):
        return (
            "("
            + ", ".join(
                f"{each.name} {_shown(getattr(value, each.name))}" for each in dataclasses.fields(value)
            )
            + ")"
        )
    items = sorted(value) if isinstance(value, frozenset) else value
    return (
        "["
        + ", ".join(f"({_shown(each)})" if isinstance(each, Mapping) else _shown(each) for each in items)
        + "]"
    )
