"""Variables of a case (`$name + 1`, `${name}`), and comparing what came with what may come."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from itertools import pairwise

from replispec.conformance.model import Matcher

_WHOLE = re.compile(r"\$(\w+)(?:\s*([+-])\s*([0-9]{1,20}))?")
_INSIDE = re.compile(r"\$\{(\w+)\}")
_LOOKS_LIKE_ONE = re.compile(r"\$[\w{]")
TAGS = frozenset(
    (
        "present",
        "absent",
        "not",
        "one_of",
        "above",
        "at_least",
        "at_most",
        "set",
        "has",
        "lacks",
        "count",
        "ascending",
        "each",
        "all",
        "observed",
    )
)
_UNORDERED = frozenset(("set", "has", "lacks"))
Variables = Mapping[str, object]


class Missing:
    """What stands for a value that did not come."""

    def __repr__(self) -> str:
        return "nothing"


MISSING = Missing()


class UnknownVariable(Exception):
    """A variable that nothing has set, or nothing to count with: a fault of the case, or of who said it."""


def names_in(value: object) -> Iterator[str]:
    """Every variable that a value, an action or an outcome mentions.

    Raises UnknownVariable for what only looks like one.
    """
    if isinstance(value, str):
        if "$" not in value:
            return
        whole = _WHOLE.fullmatch(value)
        if whole is None and _LOOKS_LIKE_ONE.search(_INSIDE.sub("", value)):
            raise UnknownVariable(
                f"{value!r} is no variable: write $name, $name + 1, or ${{name}} inside a text"
            )
        yield from [whole[1]] if whole else _INSIDE.findall(value)
    elif isinstance(value, Matcher):
        yield from names_in(value.value)
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from names_in(key)
            yield from names_in(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from names_in(each)
    elif is_dataclass(value):
        for part in fields(value):
            yield from names_in(getattr(value, part.name))


def is_variable(text: str) -> bool:
    """Whether a text is nothing but a variable, perhaps counted on from."""
    return _WHOLE.fullmatch(text) is not None


def filled(value: object, variables: Variables) -> object:
    """The value with variables put in. Raises UnknownVariable."""
    if isinstance(value, str):
        return _text(value, variables)
    if isinstance(value, Matcher):
        return Matcher(value.tag, filled(value.value, variables))
    if isinstance(value, Mapping):
        return {str(_text(key, variables)): filled(each, variables) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [filled(each, variables) for each in value]
    return value


def _text(text: str, variables: Variables) -> object:
    whole = _WHOLE.fullmatch(text)
    if whole is None:
        return _INSIDE.sub(lambda match: wire_text(_looked_up(match[1], variables)), text)
    value = _looked_up(whole[1], variables)
    if whole[2] is None:
        return value
    step = int(whole[3])
    return number(value) + (step if whole[2] == "+" else -step)


def _looked_up(name: str, variables: Variables) -> object:
    try:
        return variables[name]
    except KeyError:
        raise UnknownVariable(f"${name} was not saved by a step before") from None


def number(value: object) -> int:
    """A whole number, also one that is written as text. Raises UnknownVariable for anything else."""
    try:
        return int(value)  # type: ignore[call-overload, no-any-return]  # whatever was saved
    except (TypeError, ValueError):
        raise UnknownVariable(f"{value!r} is no number to count with") from None


def wire_text(value: object) -> str:
    """A value as headers write it: truth in small letters, all else as Python's text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def difference(found: object, wanted: object, name: str) -> str | None:
    """The first place where `found` does not fit `wanted`, in words; None when it fits."""
    if isinstance(wanted, Matcher) and wanted.tag == "all":
        lefts = (difference(found, each, name) for each in _members(wanted.value))
        return next((left for left in lefts if left is not None), None)
    if isinstance(wanted, Matcher) and wanted.tag == "each" and isinstance(found, list):
        return _list_difference(found, [wanted.value] * len(found), name)
    if isinstance(wanted, Matcher):
        came = _in_order(found) if wanted.tag in _UNORDERED else found
        return None if _tag_fits(found, wanted) else f"{name} {shown(came)} instead of {_tag_shown(wanted)}"
    if isinstance(wanted, Mapping):
        return _mapping_difference(found, wanted, name)
    if isinstance(wanted, list):
        return _list_difference(found, wanted, name)
    return None if same(found, wanted) else f"{name} {shown(found)} instead of {shown(wanted)}"


def _mapping_difference(found: object, wanted: Mapping[str, object], name: str) -> str | None:
    if not isinstance(found, Mapping):
        return f"{name} {shown(found)} instead of fields"
    for key, value in wanted.items():
        left = difference(found.get(key, MISSING), value, f"{name}.{key}")
        if left is not None:
            return left
    return None


def _list_difference(found: object, wanted: list[object], name: str) -> str | None:
    if not isinstance(found, list) or len(found) != len(wanted):
        return f"{name} {shown(found)} instead of {shown(wanted)}"
    lefts = (
        difference(one, other, f"{name}.{at}")
        for at, (one, other) in enumerate(zip(found, wanted, strict=True))
    )
    return next((left for left in lefts if left is not None), None)


def same(found: object, wanted: object) -> bool:
    """Equal as the wire writes them: "1" is 1 and "true" is true; null is nothing."""
    if found is None or isinstance(found, Missing) or wanted is None:
        return wanted is None and (found is None or isinstance(found, Missing))
    if isinstance(found, Mapping | list) or isinstance(wanted, Mapping | list):
        return found == wanted
    return wire_text(found) == wire_text(wanted)


def _tag_fits(found: object, wanted: Matcher) -> bool:
    there = found is not None and not isinstance(found, Missing)
    match wanted.tag:
        case "present":
            return there
        case "each":
            return False  # no list came
        case "absent":
            return not there
        case "not":
            return difference(found, wanted.value, "") is not None
        case "one_of":
            return any(difference(found, each, "") is None for each in _members(wanted.value))
        case "above" | "at_least" | "at_most":
            return there and _compared(found, wanted)
        case _:
            return isinstance(found, list | Mapping) and _holds(found, wanted)


def _compared(found: object, wanted: Matcher) -> bool:
    try:
        left, right = int(wire_text(found)), int(wire_text(wanted.value))
    except ValueError:
        return False
    if wanted.tag == "above":
        return left > right
    return left >= right if wanted.tag == "at_least" else left <= right


def _holds(found: list[object] | Mapping[str, object], wanted: Matcher) -> bool:
    if wanted.tag == "count":
        return same(len(found), wanted.value)
    if wanted.tag == "ascending":
        return _ascends(found, wire_text(wanted.value))
    inside, members = list(found), _members(wanted.value)
    if wanted.tag == "lacks":
        return not any(_fits(one, member) for one in inside for member in members)
    for member in members:
        at = next((at for at, one in enumerate(inside) if _fits(one, member)), None)
        if at is None:
            return False
        del inside[at]
    return wanted.tag == "has" or not inside


def _fits(found: object, wanted: object) -> bool:
    return difference(found, wanted, "") is None


def _ascends(found: list[object] | Mapping[str, object], name: str) -> bool:
    values = [each.get(name) for each in found if isinstance(each, Mapping)]
    numbers = [each for each in values if isinstance(each, int)]
    return len(numbers) == len(found) and all(a < b for a, b in pairwise(numbers))


def _members(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def _in_order(found: object) -> object:
    """A list whose order says nothing, in the one order that symptoms show it in."""
    return sorted(found, key=_rank) if isinstance(found, list) else found


def _rank(member: object) -> tuple[bool, int, str]:
    """Numbers by their size, then all else by its text. A number may have any number of digits."""
    text = shown(member)
    digits = text.lstrip("0")
    return (False, len(digits), digits) if text.isdecimal() else (True, 0, text)


def _tag_shown(wanted: Matcher) -> str:
    words = wanted.tag.replace("_", " ")
    return words if wanted.value is None else f"{words} {shown(wanted.value)}"


def shown(value: object) -> str:
    """A value in a symptom: short, lists and fields in an order of their own."""
    if isinstance(value, Matcher):
        return _tag_shown(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {shown(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(shown(each) for each in value) + "]"
    return "nothing" if value is None or isinstance(value, Missing) else wire_text(value)


def renamed(text: str, variables: Variables, named: Iterable[str] = ()) -> str:
    """A symptom with fresh names and numbers of this run replaced by the names of their variables.

    Values that no other run has by chance are replaced, those of five characters and more, and as whole
    words the values of the variables in `named`, which the failed step mentions.
    """
    known = sorted(
        (
            (wire_text(value), name)
            for name, value in variables.items()
            if isinstance(value, str | int) and not isinstance(value, bool)
        ),
        key=lambda pair: (-len(pair[0]), pair[1]),
    )
    for value, name in known:
        if len(value) > 4:
            text = text.replace(value, f"${name}")
    for name in named:  # after the long texts, which may hold such a number
        value = wire_text(variables.get(name))
        if value:
            text = re.sub(rf"(?<![\w.]){re.escape(value)}(?![\w.])", f"${name}", text)
    return text
