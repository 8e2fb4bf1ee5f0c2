"""Kafka's messages for tests: any message of a version, and the golden ones of the specification."""

from __future__ import annotations

import dataclasses
import typing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from hypothesis import strategies as st

from replispec.wire.kafka import apache, design, requests
from replispec.wire.kafka.commands import REQUESTS, RESPONSES
from tests.wire.strategies import INT16, INT32, NAME, messages

VECTORS = Path(__file__).parents[2] / "spec/vectors/kafka/messages.yaml"
MODULES = (requests, design, apache)
FORMS = (*REQUESTS, *RESPONSES)
# Every message that a code means, in each of its versions.
VERSIONED: list[tuple[type[Any], int]] = [
    (form.message, version) for form in FORMS for version in range(form.first, form.last + 1)
]
FRAMES: tuple[type[Any], ...] = (
    requests.DesignRequestFrame,
    requests.DesignResponseFrame,
    requests.ApacheRequestFrame,
    requests.ApacheResponseFrame,
)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
BROKERS = st.lists(INT32, max_size=4, unique=True)
# The fields that only later versions have: first version, and what they may be.
SINCE: dict[tuple[str, str], tuple[int, st.SearchStrategy[Any]]] = {
    ("DesignLeaderAndIsrRequest", "controller_epoch"): (2, INT32),
    ("DesignStopReplicaRequest", "controller_epoch"): (2, INT32),
    ("DesignLeaderAndIsr", "replicas"): (2, st.lists(INT32, max_size=4)),
    ("DesignLeaderAndIsr", "topic_generation"): (2, INT64),
    ("ApacheLeaderAndIsr", "is_new"): (1, st.booleans()),
}


def ranges(version: int) -> dict[tuple[str, str], st.SearchStrategy[Any]]:
    """What the attributes of the messages of one version may be, where their type does not say it."""
    found: dict[tuple[str, str], st.SearchStrategy[Any]] = {
        key: values if version >= first else st.none() for key, (first, values) in SINCE.items()
    }
    for name in ("DesignPartitionError", "ApachePartitionError"):
        found[name, "error"] = INT16
    for name in ("ApacheLeaderAndIsrResponse", "ApacheStopReplicaResponse"):
        found[name, "error"] = INT16
    found["DesignLeaderAndIsr", "isr"] = BROKERS
    for name, field, element in (
        ("DesignLeaderAndIsrRequest", "partitions", design.DesignLeaderAndIsr),
        ("DesignStopReplicaRequest", "partitions", design.DesignPartition),
        ("DesignLeaderAndIsrResponse", "errors", design.DesignPartitionError),
        ("DesignStopReplicaResponse", "errors", design.DesignPartitionError),
    ):
        found[name, field] = st.lists(
            messages(element, found), max_size=3, unique_by=lambda one: (one.topic, one.partition_id)
        )
    return found


def of_version(kind: type[Any], version: int) -> st.SearchStrategy[Any]:
    """Any message of this class that its version can say."""
    return messages(kind, ranges(version))


def frames(kind: type[Any]) -> st.SearchStrategy[Any]:
    """Any frame of this class."""
    narrow = {
        (kind.__name__, name): INT16 for name in ("request_type_id", "version_id", "api_key", "api_version")
    }
    return messages(kind, {**narrow, (kind.__name__, "client_id"): st.none() | NAME | st.just("")})


@dataclass(frozen=True)
class Golden:
    """One message of spec/vectors as bytes and as an object."""

    name: str
    kind: type[Any]
    given: dict[str, int]
    data: bytes
    message: Any


def golden() -> list[Golden]:
    """The golden messages, in the order of the file."""
    found = []
    for item in yaml.safe_load(VECTORS.read_text("utf-8"))["messages"]:
        kind = next(
            getattr(module, item["message"]) for module in MODULES if hasattr(module, item["message"])
        )
        data = b"".join(bytes.fromhex(group.partition("|")[0]) for group in item["bytes"])
        found.append(Golden(item["name"], kind, item.get("given", {}), data, build(kind, item["fields"])))
    return found


def build(kind: type[Any], values: dict[str, Any]) -> Any:
    """The message with these values, as YAML has them."""
    hints = typing.get_type_hints(kind)
    made: dict[str, Any] = {}
    for name, value in values.items():
        inner = typing.get_args(hints[name])
        element: Any = inner[0] if inner else None
        if isinstance(value, list) and dataclasses.is_dataclass(element):
            made[name] = [build(typing.cast("type[Any]", element), each) for each in value]
        else:
            made[name] = bytes.fromhex(value) if hints[name] is bytes else value
    return kind(**made)
