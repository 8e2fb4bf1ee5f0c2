"""What is said on connections: frames of the bytes that the generated codecs write, read by their streams."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from replispec.explorer.packets import Channel, Packet, PacketKind
from replispec.runtime.primitives.errors import LocalProtocolError, RemoteProtocolError
from replispec.runtime.primitives.machines import Machine
from replispec.runtime.primitives.systems import Connection, ConnectionEnd


def own_end(connection: Connection, channel: Channel, place: int) -> ConnectionEnd:
    """The end of a connection at a place, which is one of both."""
    return connection.dials if place == channel.dialler else connection.accepts


def frame(connection: Connection, channel: Channel, sender: int, data: bytes) -> Packet:
    """A frame that leaves an end. Raises LocalProtocolError when the stream does not carry it."""
    try:
        name, message = message_of(connection, own_end(connection, channel, sender), data)
    except RemoteProtocolError as error:
        raise LocalProtocolError(f"sends what nobody can read: {error}") from error
    said = tuple(_said(message))
    to = channel.other(sender)
    return Packet(PacketKind.FRAME, to, sender, 0, name, said, data, waited=False, channel=channel)


def ending(channel: Channel, sender: int) -> Packet:
    """What the other end of a connection reads after the last frame."""
    return Packet(PacketKind.END, channel.other(sender), sender, 0, "", waited=False, channel=channel)


def message_of(connection: Connection, end: ConnectionEnd, data: bytes) -> tuple[str, Any]:
    """What one frame says, with the name of its message. Raises RemoteProtocolError."""
    form, size = end.says.form_and_size(data, 0, len(data))
    if form is None or size != len(data):
        raise RemoteProtocolError(f"{len(data)} bytes of {end.says.name} are no whole frame")
    return form.message, connection.messages[form.message].decode(data)


def event_of(machine: Machine[Any, Any], name: str, message: Any, rules: Any, *, sent: bool) -> Any:
    """The event that a message is. Raises LocalProtocolError when it is none."""
    kind = machine.kind_of(name, message, rules, sent=sent)
    if kind is None:
        raise LocalProtocolError(f"{machine.name} has no event for {name}")
    return kind(message)


def _said(message: Any) -> Iterator[tuple[str, str | None]]:
    """What a message says, for people: each field as a text."""
    for each in fields(message):
        value = getattr(message, each.name)
        if isinstance(value, bytes):
            yield each.name, value.hex()
        elif isinstance(value, list | tuple):
            yield each.name, " ".join(filter(None, map(_element, value)))
        else:
            yield each.name, None if value is None else f"{value}"


def _element(value: Any) -> str:
    if not hasattr(value, "__dataclass_fields__"):
        return f"{value}"
    return "@".join(f"{getattr(value, each.name)}" for each in fields(value))
