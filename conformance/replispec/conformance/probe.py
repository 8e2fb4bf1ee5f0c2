"""Is there a subject at the address, and does it speak what its kind speaks? Said before anything runs."""

from __future__ import annotations

import ssl

import trio

from replispec.conformance import names
from replispec.conformance.encoding import Encoded, Encoder
from replispec.conformance.model import Sent
from replispec.conformance.play import Subject
from replispec.conformance.received import Answer, Breach, Ended, Message, Reader, Received
from replispec.conformance.wires import Unreachable, connect, reader_for
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.ha import HaHandshakeAddress, HaHandshakeId

PROBE_S = 5.0
PROBE_ID = 4_000_000_001  # a broker id that no case uses
_PIECE_BYTES = 65536
_ALERT = b"\x15\x03"  # a TLS record of type alert, of any version


class NoSubject(Exception):
    """Nothing at the address can be judged; the text is one line."""


async def probe(subject: Subject, address: str) -> None:
    """Return when the subject answers as its kind does. Raises NoSubject."""
    try:
        stream = await connect(address)
    except Unreachable as gone:
        raise NoSubject(str(gone)) from None
    reader = reader_for(subject.protocol, subject.release)
    first: bytes = b""
    received: Received | None = None
    async with stream:
        with trio.move_on_after(PROBE_S * subject.patience):
            encoded = _question(subject)
            for question in encoded.questions:
                reader.asked(question)
            try:
                await stream.send_all(encoded.data)
            except trio.BrokenResourceError:
                received = Ended("reset")
            else:
                first, received = await _first(stream, reader)
    if isinstance(received, Answer | Message):
        return
    if first.startswith(_ALERT) or await _speaks_tls(address):
        raise NoSubject(f"{address} speaks TLS; the suite speaks plain TCP")
    raise NoSubject(_words(address, subject.protocol, first, received))


def _question(subject: Subject) -> Encoded:
    """What every subject of the kind answers without being prepared."""
    encoder = Encoder(subject.release, 1)
    if subject.protocol != "ha":
        return encoder.sent(Sent(command=RequestCode.CONTROLLER_GET_METADATA_INFO.name), {})
    if names.by_address(subject.release):
        return encoder.sent(Sent(message=HaHandshakeAddress.__name__, fields={"address": "127.0.0.1:1"}), {})
    return encoder.sent(Sent(message=HaHandshakeId.__name__, fields={"broker_id": PROBE_ID}), {})


async def _first(stream: trio.SocketStream, reader: Reader) -> tuple[bytes, Received | None]:
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


def _words(address: str, protocol: str, first: bytes, received: Received | None) -> str:
    speaks = "HA replication" if protocol == "ha" else "remoting"
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
