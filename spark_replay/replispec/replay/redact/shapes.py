"""What each key of a family's messages holds, as the specification declares it.

A text is somebody's name, unless it is one of the words that its field declares or the field says that it
holds something else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

import orjson

TEXT: Final = "string"
MAP: Final = "map"
_NUMBERS: Final = ("int32", "int64", "uint32", "uint64", "bool")


@dataclass(frozen=True, slots=True)
class Content:
    """What one field holds: `type` of its values, of a map `keys` and `type` of what they lead to.

    `words`, `holds`: see the options of a field; `message`: the values are messages of this name.
    """

    type: str
    keys: str = ""
    words: frozenset[str] = frozenset()
    holds: str = ""
    message: str = ""

    @property
    def is_number(self) -> bool:
        """Whether values are numbers or truth values."""
        return self.type in _NUMBERS


@dataclass(frozen=True, slots=True)
class Shape:
    """The fields of a message by key; a key may hold several things in several releases. `bare`: the
    message is the value of its only field. `checksums`: keys whose value is a CRC-32 of the body."""

    fields: Mapping[str, tuple[Content, ...]]
    bare: bool = False
    checksums: frozenset[str] = frozenset()


@cache
def shapes(family: str) -> Mapping[str, Shape]:
    """Every message of a family by name."""
    entries = orjson.loads(files("replispec.wire").joinpath("names.json").read_bytes())
    own = [entry for entry in entries if entry["family"] == family]
    fields: dict[str, dict[str, tuple[Content, ...]]] = {
        entry["id"]: {} for entry in own if entry["kind"] == "message"
    }
    words = _words(own)
    for entry in own:
        if entry["kind"] == "field":
            said, keys = entry["says"], fields[entry["part_of"]]
            keys[said["key"]] = (*keys.get(said["key"], ()), _content(said, words, fields))
    bare = {entry["id"] for entry in own if entry["kind"] == "message" and "bare" in entry["says"]}
    sums = {name: _checksums(own, name) for name in fields}
    return {name: Shape(found, name in bare, sums[name]) for name, found in fields.items()}


def _checksums(entries: list[dict[str, Any]], message: str) -> frozenset[str]:
    said = (entry["says"] for entry in entries if entry["kind"] == "field" and entry["part_of"] == message)
    return frozenset(each["key"] for each in said if "over body" in each.get("checksum", ""))


def _words(entries: list[dict[str, Any]]) -> dict[str, frozenset[str]]:
    """The names of the values of each enum."""
    found: dict[str, set[str]] = {}
    for entry in entries:
        if entry["kind"] == "value":
            spelt = {entry["id"].rpartition(".")[2], *entry.get("also", ())}
            found.setdefault(entry.get("part_of", ""), set()).update(spelt)
    return {name: frozenset(values) for name, values in found.items()}


def _content(
    said: Mapping[str, str], enums: Mapping[str, frozenset[str]], messages: Mapping[str, Any]
) -> Content:
    kind = said.get("map_value") or said["type"]
    words = frozenset(filter(None, said.get("words", "").split(", ")))
    if said.get("name_in_json"):
        kind, words = TEXT, enums.get(said["enum"], frozenset())
    return Content(
        kind, said.get("map_key", ""), words, said.get("holds", ""), kind if kind in messages else ""
    )
