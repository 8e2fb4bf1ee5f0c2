"""Types of the specification as annotations of emitted Python."""

from __future__ import annotations

from typing import Final

from replispec.compiler.emit.python.tree import ABC, own
from replispec.compiler.model.value_types import Type

_PYTHON: Final = {
    "int32": "int",
    "int64": "int",
    "bool": "bool",
    "string": "str",
    "bytes": "bytes",
    "enum": "int",
}


def annotation(kind: Type) -> str:
    """The annotation of a type: messages by name, lists and sets immutable."""
    if kind.key is not None and kind.item is not None:
        text = f"{ABC.Mapping}[{annotation(kind.key)}, {annotation(kind.item)}]"
    elif kind.item is not None:
        outer = str(ABC.Sequence) if kind.kind == "list" else "frozenset"
        text = f"{outer}[{annotation(kind.item)}]"
    else:
        text = _PYTHON.get(kind.kind) or str(own(kind.name))
    return f"{text} | None" if kind.optional else text
