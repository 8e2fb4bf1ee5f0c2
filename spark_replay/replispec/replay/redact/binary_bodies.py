"""Bodies that are binary messages: the same message about others, field by field.

Numbers stay; texts are names, and bytes become bytes without meaning, the same for the same. A checksum that
held is that of the new bytes.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from replispec.replay.redact.pseudonyms import Pseudonyms
from replispec.runtime.primitives.binary import BinaryMessage
from replispec.runtime.primitives.errors import RemoteProtocolError

_HOLDS = "_holds"


def redacted_body(body: bytes, kind: type[BinaryMessage], names: Pseudonyms) -> bytes:
    """The body as a message of `kind` of the same size; zeros when it is none."""
    try:
        made: bytes = _shown(kind.decode(body), names).encode()
    except RemoteProtocolError:
        made = b""
    return made if len(made) == len(body) else bytes(len(body))


def _shown(message: Any, names: Pseudonyms) -> Any:
    said = {each.name: getattr(message, each.name) for each in fields(message)}
    made = {
        name: None if getattr(message, f"{name}{_HOLDS}", False) else _value(value, names)
        for name, value in said.items()
    }
    return type(message)(**made)


def _value(value: Any, names: Pseudonyms) -> Any:
    if isinstance(value, bytes):
        return names.content(value)
    if isinstance(value, str):
        return names.text(value.encode()).decode()
    if isinstance(value, list):
        return [_value(each, names) for each in value]
    return _shown(value, names) if is_dataclass(value) else value
