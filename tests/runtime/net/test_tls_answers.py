"""A peer that makes TLS itself answer and takes none of the answers costs little memory, and not for long."""

from __future__ import annotations

import hashlib
import hmac
import socket
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import trio
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from lab.certificates import Authority
from replispec.runtime.net.node_shell import Bounds
from replispec.runtime.net.sealed import SAID_BYTES_MAX
from replispec.runtime.net.sealing import Sealing
from replispec.runtime.world import Closed, Effect, Event
from replispec.wire.rocketmq.options import TlsOptions
from tests.runtime.net.hosted import Host, ScriptedNode, hosted, run_jumping, until


@pytest.fixture(name="authority", scope="module")
def _authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


def _sealing(authority: Authority) -> Sealing:
    own = authority.issue("server")
    return Sealing(
        TlsOptions(
            tls_server_mode="ENFORCING", tls_server_cert_path=own.certificate, tls_server_key_path=own.key
        )
    )


def _nothing(event: Event) -> Iterable[Effect]:  # noqa: ARG001
    return ()


def _refusals(host: Host) -> list[dict[str, Any]]:
    return [line for line in host.lines if line["what"] == "peer refused"]


class _AskingAgain:
    """A client of TLS 1.2 that asks to begin again and again, which no library lets it, and never reads."""

    HELLO = b"\x01\0\0\0"

    def __init__(self, authority: Authority, folder: Path) -> None:
        self._keys = folder / "keys.log"
        context = ssl.create_default_context(cafile=authority.trust)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers("ECDHE-ECDSA-AES256-GCM-SHA384")
        context.options |= ssl.OP_NO_TICKET
        context.keylog_filename = str(self._keys)
        self._into, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._into, self._out, server_hostname="127.0.0.1")
        self._sequence = 1

    async def begin(self, host: Host) -> trio.SocketStream:
        """A connection whose kernel keeps little of what comes."""
        stream, first = await host.connect(), b""
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                await stream.send_all(self._out.read())
                data = await stream.receive_some(65_536)
                first = first or data
                self._into.write(data)
        said = next(each.split() for each in self._keys.read_text().splitlines() if each.startswith("CLIENT"))
        random, secret = bytes.fromhex(said[1]), bytes.fromhex(said[2])
        keys = _expanded(secret, b"key expansion" + first[11:43] + random, 72)
        self._seal, self._salt = AESGCM(keys[:32]), keys[64:68]
        return stream

    def asks(self, count: int) -> bytes:
        """So many sealed records, each of which is answered with a sealed alert."""
        return b"".join(self._ask() for _ in range(count))

    def _ask(self) -> bytes:
        number = self._sequence.to_bytes(8)
        self._sequence += 1
        about = number + b"\x16\x03\x03" + len(self.HELLO).to_bytes(2)
        sealed = number + self._seal.encrypt(self._salt + number, self.HELLO, about)
        return b"\x16\x03\x03" + len(sealed).to_bytes(2) + sealed


def _expanded(secret: bytes, seed: bytes, size: int) -> bytes:
    """RFC 5246, section 5."""
    state, found = seed, b""
    while len(found) < size:
        state = hmac.digest(secret, state, hashlib.sha384)
        found += hmac.digest(secret, state + seed, hashlib.sha384)
    return found[:size]


def test_a_peer_that_makes_tls_answer_and_takes_nothing_is_dropped(
    authority: Authority, tmp_path: Path
) -> None:
    async def test() -> None:
        node = ScriptedNode(_nothing)
        async with hosted(node, sealing=_sealing(authority)) as host:
            client = _AskingAgain(authority, tmp_path)
            stream = await client.begin(host)

            async def ask_on() -> None:
                for _ in range(2_000):
                    await stream.send_all(client.asks(1_000))

            with pytest.raises(trio.BrokenResourceError):
                await ask_on()
            await until(lambda: bool(node.of(Closed)))
            assert str(SAID_BYTES_MAX) in node.of(Closed)[0].reason
            assert [str(SAID_BYTES_MAX) in line["reason"] for line in _refusals(host)] == [True]

    trio.run(test)


def test_what_tls_itself_says_counts_for_the_time_in_which_a_peer_must_take_something(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Less than the bound of bytes, for ever."""
    monkeypatch.setattr("replispec.runtime.net.sealed.SAID_BYTES_MAX", 1 << 40)

    async def test() -> None:
        node = ScriptedNode(_nothing)
        async with hosted(node, sealing=_sealing(authority), bounds=Bounds(stall_s=3)) as host:
            client = _AskingAgain(authority, tmp_path)
            stream = await client.begin(host)
            # More than the kernel keeps for it.
            for _ in range(200):
                await stream.send_all(client.asks(1_000))
            await until(lambda: bool(node.of(Closed)), every_s=1)
            assert node.of(Closed)[0].reason == "the peer took nothing for 3 s"

    run_jumping(test)
