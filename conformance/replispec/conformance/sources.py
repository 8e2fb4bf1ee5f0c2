"""YAML files of cases as values that remember their lines. The dialect has no anchors and no doubled keys."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import yaml

from replispec.conformance.model import CaseError, CasePlace, Matcher
from replispec.runtime.primitives.jsons import NESTED_MAX

_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")
_DECIMAL = re.compile(r"-?[0-9]+\.[0-9]+")
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}
_STANDARD = "tag:yaml.org,2002:"
_FAST: Any = getattr(yaml, "CSafeLoader", None)
# No number of any protocol has as many, and what is longer cannot be read as one.
DIGITS_MAXIMUM = 100
_TOO_DEEP = f"values stand within values too deeply: {NESTED_MAX} deep is the most"


@dataclass(frozen=True, slots=True)
class Item:
    """A value and its place: a dict of items, a list of items, a text, number or truth, or a tagged one."""

    place: CasePlace
    value: object
    tag: str = ""

    def mapping(self, what: str) -> dict[str, Item]:
        """The keys of a mapping. Raises CaseError when it is none."""
        if not isinstance(self.value, dict) or self.tag:
            raise CaseError(self.place, f"{what}: a mapping is expected")
        return self.value

    def sequence(self, what: str) -> list[Item]:
        """The members of a list. Raises CaseError when it is none."""
        if not isinstance(self.value, list) or self.tag:
            raise CaseError(self.place, f"{what}: a list is expected")
        return self.value

    def plain(self) -> object:
        """The value without places; tags become matchers."""
        value = self.value
        if isinstance(value, dict):
            value = {key: item.plain() for key, item in value.items()}
        elif isinstance(value, list):
            value = [item.plain() for item in value]
        return Matcher(self.tag, value) if self.tag else value


def read(path: Path, shown: str) -> Item:
    """The one document of a file. Raises CaseError when it is no YAML of this dialect."""
    try:
        node = _composed(path.read_text(encoding="utf-8"))
    except yaml.MarkedYAMLError as fault:
        line = fault.problem_mark.line + 1 if fault.problem_mark else 1
        raise CaseError(CasePlace(shown, line), f"no YAML: {fault.problem}") from None
    except (UnicodeDecodeError, yaml.YAMLError) as fault:
        raise CaseError(CasePlace(shown, 1), f"no YAML: {' '.join(str(fault).split())}") from None
    except RecursionError:
        raise CaseError(CasePlace(shown, _too_deep(path)), _TOO_DEEP) from None
    if node is None:
        raise CaseError(CasePlace(shown, 1), "the file is empty")
    return _item(node, shown, set(), 0)


def _composed(text: str) -> yaml.Node | None:
    """The document of a text. Raises YAMLError and RecursionError.

    The parser in C reads the suite's cases in a tenth of the time. What it refuses, or would not survive
    because it is nested too deep, is left to the other one, which says why.
    """
    if _FAST is not None:
        with suppress(yaml.YAMLError):
            if _depth(yaml.parse(text, Loader=_FAST)) <= NESTED_MAX:
                return yaml.compose(text, Loader=_FAST)
    return yaml.compose(text, Loader=yaml.SafeLoader)


def _depth(events: Iterable[yaml.Event]) -> int:
    """How deep mappings and lists stand within each other."""
    signs = (
        isinstance(each, yaml.CollectionStartEvent) - isinstance(each, yaml.CollectionEndEvent)
        for each in events
    )
    return max(accumulate(signs), default=0)


def _too_deep(path: Path) -> int:
    """The line where values stand too deep for more than to be looked over."""
    depth = 0
    for event in yaml.parse(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > NESTED_MAX:
            return event.start_mark.line + 1 if event.start_mark else 1
    return 1


def _item(node: yaml.Node, file: str, seen: set[int], depth: int) -> Item:
    place = CasePlace(file, node.start_mark.line + 1)
    if id(node) in seen:
        raise CaseError(place, "anchors are not used in cases: write it out, or make it a given")
    if depth > NESTED_MAX:
        raise CaseError(place, _TOO_DEEP)
    seen.add(id(node))
    tag = "" if node.tag.startswith(_STANDARD) else node.tag.removeprefix("!")
    if isinstance(node, yaml.MappingNode):
        return Item(place, dict(_pairs(node, file, seen, depth)), tag)
    if isinstance(node, yaml.SequenceNode):
        return Item(place, [_item(each, file, seen, depth + 1) for each in node.value], tag)
    return Item(place, _scalar(node, place), tag)


def _pairs(node: yaml.MappingNode, file: str, seen: set[int], depth: int) -> Iterator[tuple[str, Item]]:
    known: set[str] = set()
    for key, value in node.value:
        place = CasePlace(file, key.start_mark.line + 1)
        if not isinstance(key, yaml.ScalarNode):
            raise CaseError(place, "a key has to be one word")
        if key.value in known:
            raise CaseError(place, f"the key {key.value!r} stands twice")
        known.add(key.value)
        yield _whole(key.value, place), _item(value, file, seen, depth + 1)


def _whole(text: str, place: CasePlace) -> str:
    """A text as it stands, which an escape may have given half a character. Raises CaseError."""
    if any("\ud800" <= each <= "\udfff" for each in text):
        raise CaseError(place, f"half a character is no text: {text[:DIGITS_MAXIMUM]!a}")
    return text


def _scalar(node: yaml.Node, place: CasePlace) -> object:
    text = _whole(str(node.value), place)
    if getattr(node, "style", None):
        return text
    if text in _WORDS:
        return _WORDS[text]
    if len(text) > DIGITS_MAXIMUM and (_INTEGER.fullmatch(text) or _DECIMAL.fullmatch(text)):
        raise CaseError(place, f"a number has at most {DIGITS_MAXIMUM} digits, not {len(text)}")
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _DECIMAL.fullmatch(text) else text
