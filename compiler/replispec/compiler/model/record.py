"""Messages of our own as bindings see them: what a record of the log may hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RecordField:
    """A field of a message of our own: its kind is a scalar of protobuf, enum or message."""

    name: str
    kind: str
    repeated: bool = False
    optional: bool = False
    type_name: str = ""
    oneof: str = ""


@dataclass(frozen=True, slots=True)
class RecordMessage:
    """A message or an enum of our own; an enum has its values."""

    name: str
    fields: Mapping[str, RecordField]
    values: Mapping[str, int] = field(default_factory=dict)
