"""Events and claims on their way through a table: the fields of an event of a machine, or values of its
variables, as JSON by the machine's own names. What was not seen is left out."""

from __future__ import annotations

import functools
import json
import types
import typing
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from replispec.runtime.primitives.unknown import UNKNOWN, PartlySeen


def content_of(values: Mapping[str, Any]) -> str:
    """The values as text, sets in ascending order."""
    seen = {name: value for name, value in values.items() if value is not UNKNOWN}
    return json.dumps(seen, default=sorted, separators=(",", ":"))


def fields_of(event: Any) -> dict[str, Any]:
    """The fields of a generated event; of one that holds a message, those of the message."""
    names = [each.name for each in fields(event)]
    held = event.message if names == ["message"] else event
    return {each.name: getattr(held, each.name) for each in fields(held)}


def values_of(content: str | None, kind: type) -> dict[str, Any]:
    """The values that a text holds, as the fields of a generated class have them."""
    hints = _hints(kind)
    values = json.loads(content) if content else {}
    return {name: _revived(value, hints.get(name)) for name, value in values.items()}


def seen_of(content: str | None, kind: type) -> PartlySeen:
    """An event with the fields that a text holds; all others are unknown."""
    return PartlySeen(**values_of(content, kind))


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _revived(value: Any, hint: Any) -> Any:
    """JSON knows neither sets nor keys that are numbers."""
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    for option in options:
        origin = typing.get_origin(option)
        if origin is frozenset and isinstance(value, list):
            return frozenset(value)
        if origin is Mapping and isinstance(value, dict) and typing.get_args(option)[0] is int:
            return {int(key): each for key, each in value.items()}
    return value
