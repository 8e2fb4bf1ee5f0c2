"""The names by which Wireshark's filters know the fields of a family, and what the dissector shows of it.

Names follow from the specification: `<protocol>.<field>`, `<protocol>.<list>.<field>` for the elements of
a list, `rocketmq.ext.<message>.<field>` for what a remoting header says in its extension fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from replispec.compiler.model.layout import wire_fields
from replispec.compiler.model.message import Field, Message, Model, SpecificationError


@dataclass(frozen=True, slots=True)
class Filter:
    """One filter: `type` is string, bytes, bool, none, int32, int64, uint32, request, response (numbers
    of packets) or duration; `enum` names the values of a number."""

    name: str
    type: str
    title: str
    about: str
    enum: str = ""


@dataclass(frozen=True, slots=True)
class Protocol:
    """A protocol of Wireshark: the streams whose messages it shows, further messages, and `derived`,
    what its dissector adds to what stands in the bytes."""

    name: str
    title: str
    streams: str
    further: tuple[str, ...]
    derived: tuple[Filter, ...]

    def messages(self, model: Model) -> list[Message]:
        """The messages whose fields are shown under this protocol's name."""
        return [
            message
            for message in model.messages.values()
            if message.name in self.further
            or any(re.fullmatch(self.streams, name) for name in message.streams)
        ]


@dataclass(frozen=True, slots=True)
class Dissection:
    """How a family is dissected: its protocols, the filters of extension fields, the parts of the
    dissector (files below lua/) in the order of the chunk, and what these call by name: streams, fields
    by message, values by enum."""

    protocols: tuple[Protocol, ...]
    extended: str
    parts: tuple[str, ...]
    streams: tuple[str, ...]
    fields: Mapping[str, tuple[str, ...]]
    values: Mapping[str, tuple[str, ...]]


def _made(name: str, kind: str, title: str, about: str, enum: str = "") -> Filter:
    return Filter(name, kind, title, about, enum)


_ROCKETMQ = Protocol(
    "rocketmq",
    "RocketMQ remoting",
    "REMOTING",
    ("RemotingHeader",),
    (
        _made("rocketmq.code_name", "string", "Code name", "the code's name; both when releases differ"),
        _made("rocketmq.message", "string", "Message", "the specification's name of the header"),
        _made("rocketmq.body_size", "uint32", "Body size", "bytes of the body; absent when there is none"),
        _made("rocketmq.json", "string", "JSON", "one line `name: value` of a JSON body"),
        _made("rocketmq.line", "string", "Line", "one line of a body of text"),
        _made("rocketmq.request_code", "int32", "Request code", "what the answer answers", "RequestCode"),
        _made("rocketmq.request_in", "request", "Request in", "the packet of an answer's request"),
        _made("rocketmq.response_in", "response", "Response in", "the packet of a request's answer"),
        _made("rocketmq.response_time", "duration", "Response time", "from the request to its answer"),
    ),
)
_HA = Protocol(
    "rocketmq_ha",
    "RocketMQ replication",
    "HA_.*",
    (),
    (_made("rocketmq_ha.message", "string", "Message", "the specification's name of the message"),),
)
_LOG = Protocol(
    "rocketmq_log",
    "RocketMQ commit log",
    "COMMIT_LOG",
    (),
    (_made("rocketmq_log.message", "string", "Message", "the specification's name of the record"),),
)
_SHARED_PARTS = ("bytes.lua", "fields.lua", "frames.lua", "json.lua")
DISSECTIONS = {
    "rocketmq": Dissection(
        (_ROCKETMQ, _HA, _LOG),
        "rocketmq.ext",
        (
            *_SHARED_PARTS,
            *(f"rocketmq/{part}.lua" for part in ("log", "pairs", "header", "remoting", "ha")),
        ),
        streams=(
            *("REMOTING", "COMMIT_LOG", "HA_REPLICA", "HA_MASTER", "HA_MASTER_5_0_0"),
            *("HA_LEGACY_REPLICA", "HA_LEGACY_MASTER"),
        ),
        fields={
            "RemotingFrame": ("serialize_type", "header_length", "header", "body"),
            "RemotingHeader": ("code", "opaque", "flag"),
        },
        values={"SerializeType": ("JSON",), "RemotingFlag": ("RESPONSE", "ONEWAY")},
    )
}


def protocol_filters(model: Model, dissection: Dissection, protocol: Protocol) -> list[Filter]:
    """All filters of a protocol, each once. Raises SpecificationError when two fields contend for a name."""
    found: dict[str, Filter] = {}
    places: dict[str, Field] = {}
    for message in protocol.messages(model):
        for field, made in field_filters(model, message, protocol.name):
            before = found.setdefault(made.name, made)
            places.setdefault(made.name, field)
            if (before.type, before.enum) != (made.type, made.enum):
                _contend(field, made, str(places[made.name].place))
    for made in protocol.derived:
        if made.name in found:
            _contend(places[made.name], made, "the dissector")
        found[made.name] = made
    if dissection.extended.startswith(f"{protocol.name}."):
        found |= {made.name: made for made in extended_filters(model, dissection)}
    return list(found.values())


def _contend(field: Field, made: Filter, other: str) -> None:
    raise SpecificationError(
        field.place, f"the filter {made.name} has another meaning at {other}", "give the field another name"
    )


def extended_filters(model: Model, dissection: Dissection) -> Iterator[Filter]:
    """The filters of all typed header fields."""
    for message in header_messages(model):
        for field in message.fields:
            made = _filter(field, extended_name(dissection, message, field))
            about = f"{field.key} of {message.name}"
            yield replace(made, about=f"{about}: {field.about}" if field.about else about)


def extended_name(dissection: Dissection, message: Message, field: Field) -> str:
    """The filter of one typed header field."""
    return f"{dissection.extended}.{_snake(message.name)}.{field.name}"


def header_messages(model: Model) -> list[Message]:
    """The messages whose fields travel as texts in the header of a command."""
    return [message for message in model.messages.values() if message.layout == "REMOTING_HEADER"]


def field_filters(model: Model, message: Message, prefix: str) -> Iterator[tuple[Field, Filter]]:
    """The filters of a binary message below `prefix`, with those of its lists and maps."""
    for field in message.fields:
        made = _filter(field, f"{prefix}.{field.name}")
        yield field, made
        if field.type == "map":
            yield field, _made(f"{made.name}.key", "string", "Key", f"a key of {field.name}")
            yield field, _made(f"{made.name}.value", "string", "Value", f"a value of {field.name}")
        elif field.is_message:
            element = model.messages[field.type]
            yield field, _made(f"{made.name}.element", "none", element.name, element.about)
            yield from field_filters(model, element, made.name)


def _filter(field: Field, name: str) -> Filter:
    kind = "none" if field.type == "map" or field.is_message else "int32" if field.is_enum else field.type
    title = field.name.replace("_", " ").capitalize()
    return Filter(name, kind, title, field.about, field.enum if kind in ("int32", "uint32") else "")


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def check_needs(model: Model, dissection: Dissection) -> None:
    """Raises SpecificationError when something is not there that the dissector calls by name."""
    carried = {name for message in model.messages.values() for name in message.streams}
    missing = [f"stream {name}" for name in dissection.streams if name not in carried]
    for owner, names in dissection.fields.items():
        message = model.messages.get(owner)
        missing += [f"{owner}.{name}" for name in names if message is None or not message.field_named(name)]
    for owner, names in dissection.values.items():
        known = {value.name for value in model.enums[owner].values} if owner in model.enums else set()
        missing += [f"{owner}.{name}" for name in names if name not in known]
    if missing:
        raise SpecificationError(
            f"proto/{model.family}",
            f"the dissector needs {', '.join(missing)}",
            "keep the name, or change it in the dissector's parts (lua/ of the compiler) too",
        )


def shown_messages(model: Model, dissection: Dissection) -> Iterator[tuple[Protocol, Message]]:
    """Every message of a stream with the protocol that shows it; checks that the dissector can read it."""
    for protocol in dissection.protocols:
        for message in protocol.messages(model):
            for field in wire_fields(message):
                _check_readable(message, field)
            yield protocol, message


def _check_readable(message: Message, field: Field) -> None:
    if field.count or field.when or field.nullable:
        raise SpecificationError(
            field.place,
            f"{message.name}.{field.name}: the dissector reads no counted, conditional or nullable fields",
            "teach it (lua/fields.lua of the compiler), or keep the message out of the family's streams",
        )
