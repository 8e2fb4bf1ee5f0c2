"""Bodies of Kafka's messages: of what a case says, filled up as whoever sends them would, and as it compares
what came."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cache
from types import UnionType
from typing import Any, Final, NamedTuple, get_args, get_origin, get_type_hints

from replispec.conformance.encoding import Unsendable
from replispec.conformance.kafka.batches import batch_bytes, shown_batches
from replispec.conformance.values import number
from replispec.runtime.primitives.binary import VersionedBinary
from replispec.runtime.primitives.errors import LocalProtocolError
from replispec.runtime.primitives.exchanges import Message
from replispec.wire.kafka.codes import ApiKey, ErrorCode

CONTROLLER_ID: Final = 30_000
"""The broker id under which the suite is the controller."""
NO_EPOCH, FIRST_EPOCH = -1, 0
"""Of a batch that no leader has seen, and of one that a leader gives away."""
BYTES_MAX, TIMEOUT_MS, PREFERS_NOBODY = 1 << 20, 10_000, -1
RECORDS, PARTITIONS, TOPICS, TOPIC_NAME = "records", "partitions", "topics", "topic_name"
_USUAL: Final[Mapping[str, object]] = {
    "acks": 1,
    "broker_epoch": -1,
    "controller_id": CONTROLLER_ID,
    "current_leader_epoch": -1,
    "is_new": False,
    "max_bytes": BYTES_MAX,
    "log_append_time": -1,
    "partition_max_bytes": BYTES_MAX,
    "preferred_read_replica": PREFERS_NOBODY,
    "rack": None,
    "replica_id": -1,
    "session_epoch": -1,
    "timeout": TIMEOUT_MS,
    "transactional_id": None,
}
"""What stands in a field of which a case says nothing; elsewhere 0, nothing and no text."""
_USUAL_OF_READERS: Final[Mapping[str, object]] = {"log_start_offset": -1}
ENUMS: Final = {"error": ErrorCode, "api_key": ApiKey}
_ZEROS: Final = bytes(4096)


def body_bytes(kind: type[Message], values: object, version: int, what: str, *, whole: bool = True) -> bytes:
    """The bytes of a body. What the version has no room for is refused, or, of what is not `whole`, left out:
    who answers does not choose the version. Raises Unsendable."""
    message = _message(kind, values, _Form(version, whole), what)
    try:
        return bytes(message.encode(version=version) if _is_versioned(kind) else message.encode())
    except (LocalProtocolError, TypeError, AttributeError, ValueError) as fault:
        raise Unsendable(f"{what}: {fault}") from None


def _is_versioned(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, VersionedBinary)


class _Form(NamedTuple):
    """How a body is made: in which version, and whether all that is said must have room in it."""

    version: int
    whole: bool


@cache
def _empty(kind: Any, version: int) -> Mapping[str, object]:
    """The fields that a message has in a version, each with nothing in it: zeros are such a message."""
    if _is_versioned(kind):
        message, _ = kind.decode_at(_ZEROS, 0, len(_ZEROS), version=version)
    else:
        message, _ = kind.decode_at(_ZEROS, 0, len(_ZEROS))
    found = {each.name: getattr(message, each.name) for each in dataclasses.fields(kind)}
    return {name: value for name, value in found.items() if value is not None}


def _message(kind: Any, values: object, form: _Form, what: str) -> Any:
    if not isinstance(values, Mapping):
        raise Unsendable(f"{what}: fields are expected")
    hints = get_type_hints(kind)
    if unknown := sorted(set(values) - hints.keys()):
        raise Unsendable(f"{what}: unknown field {unknown[0]!r}: {', '.join(hints) or 'none'}")
    usual = _USUAL if kind.__name__.endswith("Response") else {**_USUAL, **_USUAL_OF_READERS}
    fields = {name: usual.get(name, value) for name, value in _empty(kind, form.version).items()}
    there = values.keys() if form.whole else values.keys() & fields.keys()
    fields |= {name: _value(hints[name], values[name], name, form) for name in there}
    return kind(**fields)


def _value(hint: Any, value: object, name: str, form: _Form) -> object:
    if name == RECORDS:
        return batch_bytes(value, NO_EPOCH if form.whole else FIRST_EPOCH)
    if value is None:
        return None
    kinds = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    kind = kinds[0]
    if get_origin(kind) is list:
        inner = get_args(kind)[0]
        return [_value(inner, each, name, form) for each in _listed(value, name)]
    if dataclasses.is_dataclass(kind):
        return _message(kind, value, form, name)
    if kind is int and not isinstance(value, bool):
        return _number(name, value)
    return str(value) if kind is str else value


def _listed(value: object, name: str) -> list[object]:
    if not isinstance(value, list):
        raise Unsendable(f"{name}: a list is expected")
    return value


def _number(name: str, value: object) -> int:
    """A number, a name of one, or the port of an address."""
    enum = ENUMS.get(name)
    if isinstance(value, str) and enum is not None and value in enum.__members__:
        return int(enum[value])
    if isinstance(value, str) and name == "port":
        return number(value.rpartition(":")[2])
    return number(value)


def shown_body(message: object) -> Mapping[str, object]:
    """The fields of a message as cases compare them: errors by their names, batches by what they hold. What
    lists partitions below their topics lists them beside their topics, too, as older versions do.

    Raises RemoteProtocolError for batches that are damaged.
    """
    found = {each.name: _shown(each.name, getattr(message, each.name)) for each in _fields(message)}
    if PARTITIONS in found and found[PARTITIONS] is None:
        found[PARTITIONS] = [
            {TOPIC_NAME: topic.get(TOPIC_NAME, topic.get("name")), **_partition(each)}
            for topic in _mappings(found.get(TOPICS))
            for each in _either(topic.get(PARTITIONS), topic.get("partition_indexes"))
        ]
    return found


def _fields(message: object) -> tuple[dataclasses.Field[Any], ...]:
    assert dataclasses.is_dataclass(message)
    return dataclasses.fields(message)


def _partition(each: object) -> Mapping[str, object]:
    if not isinstance(each, Mapping):
        return {"partition_index": each}
    return {name: value for name, value in each.items() if name != TOPIC_NAME}


def _mappings(value: object) -> list[Mapping[str, object]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _either(one: object, other: object) -> list[object]:
    return one if isinstance(one, list) else other if isinstance(other, list) else []


def _shown(name: str, value: object) -> object:
    if name == RECORDS and isinstance(value, bytes | memoryview):
        return shown_batches(bytes(value))
    if isinstance(value, list):
        return [_shown(name, each) for each in value]
    if isinstance(value, int) and not isinstance(value, bool) and name in ENUMS:
        return named(name, value)
    return shown_body(value) if dataclasses.is_dataclass(value) else value


def named(name: str, value: int) -> str:
    """The name of the number of a field, its digits when it has none."""
    try:
        return ENUMS[name](value).name
    except ValueError:
        return str(value)
