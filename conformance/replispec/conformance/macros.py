"""Steps that many cases take in the same way, with a few values of their own: said once, used by name.

A macro is text of cases: what it stands for is put in its place before anything is looked up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from replispec.conformance.model import CaseError, CasePlace
from replispec.conformance.sources import Item

USE = "use"
_BESIDE = (USE, "note", "over", "prepares", "optional")
_NAMED = re.compile(r"<([a-z][a-z0-9_]*)>")
_REQUIRED = None  # a parameter without a default


@dataclass(frozen=True, slots=True)
class Macro:
    """Steps with holes: `<name>` stands for the value of a parameter, `takes` holds their defaults."""

    place: CasePlace
    takes: Mapping[str, Item]
    steps: tuple[Item, ...]


def read_macros(item: Item, known: Mapping[str, Macro]) -> dict[str, Macro]:
    """The macros of a file beside the known: `takes` (null: has to be said) and `steps`. Raises CaseError."""
    whole = item.mapping("macros.yaml")
    if set(whole) != {"macros"}:
        raise CaseError(item.place, "the file holds `macros` and nothing else")
    found = {name: _macro(name, each) for name, each in whole["macros"].mapping("macros").items()}
    for name in known.keys() & found.keys():
        raise CaseError(found[name].place, f"{name} stands twice, see {known[name].place}")
    return found


def _macro(name: str, item: Item) -> Macro:
    parts = item.mapping(name)
    if set(parts) - {"takes", "steps"} or "steps" not in parts:
        raise CaseError(item.place, f"{name} has `steps`, and `takes` for what they leave open")
    takes = parts["takes"].mapping("takes") if "takes" in parts else {}
    steps = tuple(parts["steps"].sequence("steps"))
    for step in steps:
        if USE in step.mapping("a step"):
            raise CaseError(step.place, "a macro uses no other: write it out")
    named = {each for step in steps for each in _holes(step)}
    if named != set(takes):
        raise CaseError(item.place, f"{name} takes {_listed(takes)} and names {_listed(named)}")
    return Macro(item.place, takes, steps)


def expanded(item: Item, known: Mapping[str, Macro]) -> Item:
    """A list of steps with the steps of macros where they are used. Raises CaseError.

    What stands beside `use` (a note, `prepares`) is said of every step that takes its place.
    """
    steps: list[Item] = []
    for step in item.sequence("steps"):
        fields = step.mapping("a step")
        if USE not in fields:
            steps.append(step)
            continue
        for name, value in fields.items():
            if name not in _BESIDE:
                raise CaseError(value.place, f"beside `use` stand {_listed(_BESIDE)} alone, not {name!r}")
        beside = {name: value for name, value in fields.items() if name != USE}
        for name, given in fields[USE].mapping("use: {MACRO: {NAME: VALUE}}").items():
            steps.extend(_used(name, given, beside, known))
    return Item(item.place, steps)


def _used(name: str, given: Item, beside: Mapping[str, Item], known: Mapping[str, Macro]) -> Iterator[Item]:
    if name not in known:
        raise CaseError(given.place, f"there is no macro {name!r}: {_listed(known)}")
    macro, values = known[name], given.mapping(name)
    unknown = set(values) - set(macro.takes)
    if unknown:
        raise CaseError(given.place, f"{name} takes no {_listed(unknown)}: {_listed(macro.takes)}")
    filled = {**macro.takes, **values}
    missing = [each for each, value in filled.items() if value.value is _REQUIRED]
    if missing:
        raise CaseError(given.place, f"{name} needs {_listed(missing)}")
    for step in macro.steps:
        put = _put(step, filled)
        yield Item(put.place, {**put.mapping("a step"), **beside})


def _put(item: Item, values: Mapping[str, Item]) -> Item:
    """The item with its holes filled; a text that is one hole becomes the value itself."""
    value = item.value
    if isinstance(value, dict):
        value = {_text(key, values): _put(each, values) for key, each in value.items()}
    elif isinstance(value, list):
        value = [_put(each, values) for each in value]
    elif isinstance(value, str):
        whole = _NAMED.fullmatch(value)
        if whole is not None:
            put = values[whole[1]]
            return Item(put.place, put.value, item.tag or put.tag)
        value = _text(value, values)
    return Item(item.place, value, item.tag)


def _text(text: str, values: Mapping[str, Item]) -> str:
    return _NAMED.sub(lambda match: str(values[match[1]].value), text)


def _holes(item: Item) -> Iterator[str]:
    if isinstance(item.value, dict):
        for key, each in item.value.items():
            yield from _NAMED.findall(key)
            yield from _holes(each)
    elif isinstance(item.value, list):
        for each in item.value:
            yield from _holes(each)
    elif isinstance(item.value, str):
        yield from _NAMED.findall(item.value)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"
