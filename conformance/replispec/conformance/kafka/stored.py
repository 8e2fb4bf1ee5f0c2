"""What nodes of the store hold, as cases say and compare it: fields instead of the text of their JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from replispec.conformance.values import number

_DATA, _CHILDREN, _PORT = "data", "children", "port"
_DIGITS_MAX: Final = 18
"""A number of more digits stands in no node of a broker."""


def node_texts(body: object) -> object:
    """A body of a request to the store with texts where it holds fields of nodes."""
    if isinstance(body, Mapping):
        return {name: _text(each) if name == _DATA else node_texts(each) for name, each in body.items()}
    return [node_texts(each) for each in body] if isinstance(body, list) else body


def _text(value: object) -> object:
    if value is None or isinstance(value, str | bytes):
        return value
    return json.dumps(_numbered(value), separators=(",", ":"))


def _numbered(value: object) -> object:
    """Fields with the number of the port where an address stands for it."""
    if isinstance(value, Mapping):
        return {
            name: number(str(each).rpartition(":")[2]) if name == _PORT else _numbered(each)
            for name, each in value.items()
        }
    return [_numbered(each) for each in value] if isinstance(value, list) else value


def shown_nodes(body: object) -> object:
    """A body of an answer of the store with what its nodes say: data that are JSON as their fields, names of
    children that are numbers as numbers, in order."""
    if not isinstance(body, Mapping):
        return body
    shown = dict(body)
    if isinstance(found := body.get(_DATA), str):
        shown[_DATA] = _fields(found)
    if isinstance(names := body.get(_CHILDREN), list):
        shown[_CHILDREN] = sorted((_name(each) for each in names), key=lambda each: (str(type(each)), each))
    return shown


def _fields(data: str) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return data


def _name(child: object) -> int | str:
    text = str(child)
    return int(text) if text.isdecimal() and text.isascii() and len(text) <= _DIGITS_MAX else text
