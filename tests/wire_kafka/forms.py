"""Kafka's messages for tests: any message of a version, and the golden ones of the specification."""

from __future__ import annotations

import dataclasses
import typing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from hypothesis import strategies as st

from replispec.compiler.model.layout import bounds
from replispec.compiler.model.message import Field
from replispec.compiler.read.descriptors import proto_files, read_descriptors
from replispec.compiler.read.protos import read_model
from replispec.wire.kafka import apache, clients, design, requests
from replispec.wire.kafka.commands import REQUESTS, RESPONSES
from tests.compiler.specification import SPEC
from tests.wire.strategies import INT16, NAME, messages

VECTORS = Path(__file__).parents[2] / "spec/vectors/kafka/messages.yaml"
MODULES = (requests, design, apache, clients)
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
# What the fields are, as the compiler reads them: which versions have them, and what their bytes can hold.
MODEL = read_model(read_descriptors(SPEC / "proto", proto_files(SPEC / "proto")), "kafka")


def of_version(kind: type[Any], version: int) -> st.SearchStrategy[Any]:
    """Any message of this class that its version can say."""
    spec = MODEL.messages[kind.__name__]
    held = {each.name for each in dataclasses.fields(kind)}
    return st.builds(kind, **{each.name: _field(each, version) for each in spec.fields if each.name in held})


def _field(field: Field, version: int) -> st.SearchStrategy[Any]:
    when = field.when
    if when is not None and when.field == "version":
        most = version if when.maximum is None else when.maximum
        if not (when.minimum or 0) <= version <= most:
            return st.none()
    values = _values(field, version)
    return st.none() | values if field.nullable else values


def _values(field: Field, version: int) -> st.SearchStrategy[Any]:
    if not field.repeated:
        return _one(field, version)
    if not field.distinct:
        return st.lists(_one(field, version), max_size=3)
    same = (lambda one: one.identity) if field.is_message else None
    return st.lists(_one(field, version), max_size=3, unique_by=same)


def _one(field: Field, version: int) -> st.SearchStrategy[Any]:
    if field.is_message:
        module = next(each for each in MODULES if hasattr(each, field.type))
        return of_version(getattr(module, field.type), version)
    if field.type in ("int32", "int64", "uint32"):
        return st.integers(*bounds(field))
    simple: dict[str, st.SearchStrategy[Any]] = {
        "bool": st.booleans(),
        "string": NAME | st.just(""),
        "bytes": st.binary(max_size=40),
    }
    return simple[field.type]


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
        element = _element(hints[name])
        if isinstance(value, list) and dataclasses.is_dataclass(element):
            made[name] = [build(typing.cast("type[Any]", element), each) for each in value]
        else:
            made[name] = bytes.fromhex(value) if hints[name] is bytes else value
    return kind(**made)


def _element(hint: Any) -> Any:
    """What a list holds, which may be None instead; None for what is no list."""
    lists = [each for each in (hint, *typing.get_args(hint)) if typing.get_origin(each) is list]
    return typing.get_args(lists[0])[0] if lists else None
