"""Messages that the classes of Apache Kafka 2.8.2 wrote, with their values as its own converters say them.

Made by lab/kafka/KafkaVectors.java; nothing of our specification takes part.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from replispec.runtime.primitives.commands import form_of
from replispec.wire.kafka.commands import REQUESTS, RESPONSES

FOLDER = Path(__file__).parent / "kafka-2.8.2"
# What we call otherwise than Kafka, by Kafka's name: the same thing has one name in all messages.
OURS = {
    "error_code": "error",
    "topic_states": "topics",
    "topic_data": "topics",
    "responses": "topics",
    "partition_states": "partitions",
    "partition_data": "partitions",
    "partition_responses": "partitions",
    "ungrouped_partition_states": "partitions",
    "ungrouped_partitions": "partitions",
    "partition_errors": "errors",
    "forgotten_topics_data": "forgotten_topics",
    "record_set": "records",
    "id": "broker_id",
}
# Only how many bytes there are, or nothing, is said of batches.
RECORDS = ("records", "recordSet")


@dataclass(frozen=True)
class Written:
    """One message: its class, its version, its bytes, and Kafka's words for it."""

    name: str
    kind: type[Any]
    key: int
    version: int
    data: bytes
    value: dict[str, Any]


def _written() -> list[Written]:
    found = []
    for number, line in enumerate((FOLDER / "messages.jsonl").read_text("utf-8").splitlines()):
        said = json.loads(line)
        table = REQUESTS if said["kind"] == "request" else RESPONSES
        kind = form_of(table, said["key"], said["version"], "apache")
        assert kind is not None, line
        name = f"{kind.__name__}-{said['version']}-{number}"
        found.append(
            Written(name, kind, said["key"], said["version"], bytes.fromhex(said["bytes"]), said["value"])
        )
    return found


def ours(name: str) -> str:
    """Our name of what Kafka calls so."""
    words = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower().removesuffix("_ms")
    return OURS.get(words, words)


def differences(message: Any, value: dict[str, Any], path: str = "") -> list[str]:
    """Where a message says something else than Kafka's words; what Kafka does not say must be None."""
    said = {ours(name): (name, each) for name, each in value.items()}
    found = [f"{path}.{name}: we have no such field" for name in said if not hasattr(message, name)]
    for field in fields(message):
        mine = getattr(message, field.name)
        name, theirs = said.get(field.name, ("", None))
        if name in RECORDS:
            found += [] if (mine is None) == (theirs is None) else [f"{path}.{name}: {mine!r}, {theirs!r}"]
        else:
            found += _difference(mine, theirs, f"{path}.{field.name}")
    return found


def _difference(mine: Any, theirs: Any, path: str) -> list[str]:
    if isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs):
        pairs = enumerate(zip(mine, theirs, strict=True))
        return [
            each for number, (one, other) in pairs for each in _difference(one, other, f"{path}[{number}]")
        ]
    if is_dataclass(mine) and isinstance(theirs, dict):
        return differences(mine, theirs, path)
    return (
        [] if mine == theirs and type(mine) is type(theirs) else [f"{path}: {mine!r}, Kafka says {theirs!r}"]
    )


WRITTEN = _written()
