"""Is there a subject at the address, and does it speak what its kind speaks? Said before anything runs."""

from __future__ import annotations

import ssl

import trio

from replispec.conformance.judged import JudgedSubject
from replispec.conformance.received import (
    Breach,
    Ended,
    Received,
    ReceivedAnswer,
    ReceivedMessage,
    SubjectReader,
)
from replispec.conformance.wires import Unreachable, connect

PROBE_S = 5.0
_PIECE_BYTES = 65536
_HTTP = b"HTTP/"
_ALERT = b"\x15\x03"  # a TLS record of type alert, of any version


class NoSubject(Exception):
    """Nothing at the address can be judged; the text is one line."""


async def probe(subject: JudgedSubject, address: str) -> ReceivedAnswer | ReceivedMessage:
    """The first answer of a subject that answers as its kind does. Raises NoSubject."""
    try:
        stream = await connect(address)
    except Unreachable as gone:
        raise NoSubject(str(gone)) from None
    family, kind = subject.family, subject.kind
    reader = family.reader(kind.protocol, subject.release)
    first: bytes = b""
    received: Received | None = None
    async with stream:
        with trio.move_on_after(PROBE_S * max(subject.patience, 1.0)):
            encoded = family.encoder(subject.release, 1).sent(kind.question(subject.release), {})
            for question in encoded.questions:
                reader.asked(question)
            try:
                await stream.send_all(encoded.data)
            except trio.BrokenResourceError:
                received = Ended("reset")
            else:
                first, received = await _first(stream, reader)
    if isinstance(received, ReceivedAnswer) and received.code == _unknown(subject):
        command = kind.question(subject.release).command
        raise NoSubject(f"{address} speaks {kind.speaks} and does not know {command}: it is no {kind.name}")
    if isinstance(received, ReceivedAnswer | ReceivedMessage):
        return received
    if first.startswith(_HTTP):
        raise NoSubject(f"{address} speaks HTTP; a {kind.name} speaks {kind.speaks}")
    if first.startswith(_ALERT) or await _speaks_tls(address):
        raise NoSubject(f"{address} speaks TLS; the suite speaks plain TCP")
    raise NoSubject(_words(address, kind.speaks, first, received))


def _unknown(subject: JudgedSubject) -> int | None:
    """The code by which a subject of this kind says that it does not know a command."""
    name = subject.kind.unknown_command
    return None if name is None else subject.family.vocabulary.response_code(name, subject.release)


async def _first(stream: trio.SocketStream, reader: SubjectReader) -> tuple[bytes, Received | None]:
    """The first bytes that came, and what they complete: None for a connection that ended with nothing."""
    came = b""
    while True:
        try:
            data = await stream.receive_some(_PIECE_BYTES)
        except trio.BrokenResourceError:
            return came, Ended("reset")
        if not data:
            return came, Ended("in order")
        came += data
        found = reader.receive(bytes(data))
        if found:
            return came, found[0]


def _words(address: str, speaks: str, first: bytes, received: Received | None) -> str:
    if received is None:
        return f"{address} accepts a connection but answers nothing within {PROBE_S:g} s: no {speaks}?"
    if isinstance(received, Ended) and not first:
        return f"{address} ends the connection ({received.how}) without an answer: it does not speak {speaks}"
    what = received.reason if isinstance(received, Breach) else "unexpected"
    return f"{address} does not speak {speaks}: it answers {first[:16].hex(' ')} ({what})"


async def _speaks_tls(address: str) -> bool:
    """True when a TLS handshake gets an answer of TLS, whatever it says about certificates."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        plain = await connect(address)
        async with trio.SSLStream(plain, context) as stream:
            with trio.move_on_after(PROBE_S) as scope:
                await stream.do_handshake()
            return not scope.cancelled_caught
    except (Unreachable, trio.BrokenResourceError, ssl.SSLError, OSError):
        return False
