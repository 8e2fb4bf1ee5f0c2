"""TLS on loopback: what a node says and hears is the same with it, and who may not is told of once."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trio

from lab.certificates import Authority, Files
from replispec.runtime.net.node_shell import Bounds
from replispec.runtime.net.sealed import BEGIN_BYTES_MAX, RECORD_BYTES
from replispec.runtime.net.sealing import Sealing, SealingError
from replispec.runtime.primitives.parameters import HIDDEN
from replispec.runtime.world import (
    Accepted,
    Close,
    Closed,
    Connected,
    Dial,
    Effect,
    Event,
    Received,
    Send,
    Started,
)
from replispec.wire.rocketmq.options import TlsOptions
from tests.runtime.net.hosted import ScriptedNode, hosted, run_jumping, until
from tests.runtime.net.sealed_peers import (
    client_context,
    echo,
    exchange,
    refusals,
    sealed_options,
    sealed_stream,
)

YEAR_3000_S = 32_503_680_000.0
PASSWORD = "open the key"
LONG = bytes(range(256)) * (16 * RECORD_BYTES // 256)


@pytest.fixture(name="authority", scope="module")
def _authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(name="stranger", scope="module")
def _stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("strangers"), "stranger")


def test_a_node_hears_and_says_the_same_bytes_with_tls(authority: Authority) -> None:
    async def test() -> None:
        async with hosted(ScriptedNode(echo), sealing=Sealing(sealed_options(authority))) as host:
            stream = await sealed_stream(host, client_context(authority))
            assert stream.selected_alpn_protocol() is None
            assert await exchange(stream, LONG) == LONG

    trio.run(test)


def test_what_comes_with_the_last_word_of_the_handshake_is_heard(authority: Authority) -> None:
    """A peer may send a request in the packet that ends the beginning of TLS: no further byte would tell."""

    async def test() -> None:
        node = ScriptedNode(echo)
        async with hosted(node, sealing=Sealing(sealed_options(authority))) as host:
            raw = await host.connect()
            into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
            tls = client_context(authority).wrap_bio(into, out, server_hostname="127.0.0.1")
            while True:
                try:
                    tls.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    await raw.send_all(out.read())
                    into.write(await raw.receive_some())
            tls.write(b"at once")
            await raw.send_all(out.read())
            await until(lambda: bool(node.of(Received)))
            assert node.of(Received)[0].data == b"at once"

    trio.run(test)


@pytest.mark.parametrize(
    ("mode", "plain", "sealed"),
    [
        ("DISABLED", True, False),
        ("PERMISSIVE", True, True),
        ("ENFORCING", False, True),
    ],
)
def test_the_first_byte_decides(authority: Authority, mode: str, plain: bool, sealed: bool) -> None:
    async def test() -> None:
        node = ScriptedNode(echo)
        async with hosted(node, sealing=Sealing(sealed_options(authority, tls_server_mode=mode))) as host:
            stream = await host.connect()
            await stream.send_all(b"\0\0\0\1")
            if plain:
                assert await stream.receive_some() == b"\0\0\0\1"
            else:
                await _gone(stream)
                assert [line["reason"] for line in refusals(host)] == ["it speaks without TLS"]
                assert node.of(Received) == []
            if sealed:
                assert (
                    await exchange(await sealed_stream(host, client_context(authority)), b"sealed")
                    == b"sealed"
                )

    trio.run(test)


async def _gone(stream: trio.abc.Stream) -> None:
    with trio.fail_after(30):
        try:
            while await stream.receive_some():
                pass
        except trio.BrokenResourceError:
            pass


def test_a_listener_that_is_to_be_plain_has_no_tls(authority: Authority) -> None:
    async def test() -> None:
        plain = frozenset(("remoting",))
        async with hosted(
            ScriptedNode(echo), sealing=Sealing(sealed_options(authority)), plain=plain
        ) as host:
            assert await exchange(await host.connect(), b"plain") == b"plain"

    trio.run(test)


def _callers(authority: Authority, stranger: Authority) -> Iterator[tuple[str, Files | None, str]]:
    yield "none", None, "peer did not return a certificate"
    yield "a stranger's", stranger.issue("client"), "unable to get local issuer certificate"
    yield "one that ended", authority.expired("late"), "certificate has expired"


def test_who_connects_shows_a_good_certificate_where_that_is_required(
    authority: Authority, stranger: Authority
) -> None:
    options = sealed_options(
        authority, tls_server_need_client_auth="REQUIRE", tls_server_trust_cert_path=authority.trust
    )
    for _, own, reason in _callers(authority, stranger):

        async def test(own: Files | None = own, reason: str = reason) -> None:
            node = ScriptedNode(echo)
            async with hosted(node, sealing=Sealing(options)) as host:
                good = await sealed_stream(host, client_context(authority, authority.issue("client")))
                assert await exchange(good, b"good") == b"good"
                try:
                    bad = await sealed_stream(host, client_context(authority, own))
                    await _gone(bad)
                except trio.BrokenResourceError:
                    pass
                await until(lambda: bool(node.of(Closed)))
                assert len(refusals(host)) == 1
                assert reason in refusals(host)[0]["reason"]
                assert len(node.of(Received)) == 1

        trio.run(test)


class _Dialler(ScriptedNode):
    """Opens one connection, says something and hears what comes."""

    def __init__(self, address: Callable[[], str], *, plain: bool = False) -> None:
        self._address = address
        self._is_plain = plain
        super().__init__(self._react_to, listeners={"remoting": "127.0.0.1:0"})

    def _react_to(self, event: Event) -> Iterable[Effect]:
        match event:
            case Started():
                yield Dial(-1, self._address(), self._is_plain)
            case Connected(connection):
                yield Send(connection, LONG)


def _dial(
    server: TlsOptions, client: TlsOptions, *, plain: bool = False
) -> tuple[_Dialler, ScriptedNode, list[Any]]:
    """What both sides saw when the one dialled the other, and what the dialling one logged."""
    found: list[Any] = []

    async def test() -> None:
        heard = ScriptedNode(echo)
        async with hosted(heard, sealing=Sealing(server)) as host:
            dialler = _Dialler(lambda: host.addresses["remoting"], plain=plain)
            async with hosted(dialler, sealing=Sealing(client)) as own:
                await until(
                    lambda: (
                        bool(dialler.of(Closed))
                        or sum(len(each.data) for each in dialler.of(Received)) == len(LONG)
                    )
                )
                found.extend((dialler, heard, refusals(own)))

    trio.run(test)
    return found[0], found[1], found[2]


def test_two_nodes_speak_with_tls_both_ways(authority: Authority) -> None:
    own = authority.issue("member", password=PASSWORD.encode())
    options = sealed_options(
        authority,
        own,
        tls_server_key_password=PASSWORD,
        tls_server_need_client_auth="REQUIRE",
        tls_server_trust_cert_path=authority.trust,
        tls_client_cert_path=own.certificate,
        tls_client_key_path=own.key,
        tls_client_key_password=PASSWORD,
    )
    dialler, heard, refused = _dial(options, options)
    assert b"".join(each.data for each in dialler.of(Received)) == LONG
    assert dialler.of(Connected)[0].peer
    assert not refused
    assert [type(event) for event in heard.events[:3]] == [Started, Accepted, Received]


def test_a_dial_that_is_to_be_plain_has_no_tls(authority: Authority) -> None:
    server = sealed_options(authority, tls_server_mode="DISABLED")
    dialler, _, refused = _dial(server, sealed_options(authority), plain=True)
    assert b"".join(each.data for each in dialler.of(Received)) == LONG
    assert not refused


@pytest.mark.parametrize("fault", ["name", "time", "signer"])
def test_a_server_with_a_bad_certificate_is_not_spoken_to(
    authority: Authority, stranger: Authority, fault: str
) -> None:
    bad, why = {
        "name": (authority.issue("elsewhere", host="127.0.0.9"), "IP address mismatch"),
        "time": (authority.expired("old"), "certificate has expired"),
        "signer": (stranger.issue("other"), "unable to get local issuer certificate"),
    }[fault]
    dialler, heard, refused = _dial(sealed_options(authority, bad), sealed_options(authority))
    assert dialler.of(Connected) == []
    assert why in dialler.of(Closed)[0].reason
    assert [why in line["reason"] for line in refused] == [True]
    assert heard.of(Received) == []


def test_another_name_is_taken_where_it_is_configured(authority: Authority) -> None:
    named = authority.issue("named", host="cluster.internal")
    options = sealed_options(authority, named, tls_server_name="cluster.internal")
    dialler, _, refused = _dial(options, options)
    assert dialler.of(Connected)
    assert not refused


def test_nobody_is_verified_only_where_that_is_configured(authority: Authority, stranger: Authority) -> None:
    bad = stranger.issue("unknown", host="127.0.0.9")
    client = sealed_options(authority, tls_client_auth_server=False)
    dialler, _, refused = _dial(sealed_options(authority, bad), client)
    assert dialler.of(Connected)
    assert not refused


@pytest.mark.parametrize("mode", ["PERMISSIVE", "ENFORCING"])
def test_who_begins_tls_and_goes_no_further_is_dropped(authority: Authority, mode: str) -> None:
    async def test() -> None:
        node = ScriptedNode(echo)
        async with hosted(node, sealing=Sealing(sealed_options(authority, tls_server_mode=mode))) as host:
            stream = await host.connect()
            await stream.send_all(b"\x16\x03\x01\x02\x00\x01")
            await until(lambda: bool(node.of(Closed)), every_s=1)
            assert node.of(Accepted), "it does not count among the connections"
            assert "TLS has not begun" in refusals(host)[0]["reason"]

    run_jumping(test)


def test_a_beginning_takes_no_more_than_so_many_bytes(authority: Authority) -> None:
    async def test() -> None:
        node = ScriptedNode(echo)
        async with hosted(node, sealing=Sealing(sealed_options(authority))) as host:
            stream = await host.connect()
            # Fragments of one message that announces more than there may be.
            piece = b"\x16\x03\x01\x40\x00" + b"\x01\xff\xff\xff" + b"\0" * (0x4000 - 4)
            try:
                for _ in range(2 + 4 * BEGIN_BYTES_MAX // len(piece)):
                    await stream.send_all(piece)
            except trio.BrokenResourceError:
                pass
            await until(lambda: bool(node.of(Closed)))
            assert len(refusals(host)) == 1

    trio.run(test)


def test_many_refused_peers_are_one_line(authority: Authority) -> None:
    async def test() -> None:
        node = ScriptedNode(echo)
        async with hosted(node, sealing=Sealing(sealed_options(authority))) as host:
            for _ in range(20):
                stream = await host.connect()
                await stream.send_all(b"GET / HTTP/1.1\r\n\r\n")
                await _gone(stream)
            assert len(refusals(host)) == 1

    trio.run(test)


def test_older_tls_is_refused(authority: Authority) -> None:
    async def test() -> None:
        async with hosted(ScriptedNode(echo), sealing=Sealing(sealed_options(authority))) as host:
            context = client_context(authority)
            context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
            assert await exchange(await sealed_stream(host, context), b"1.2") == b"1.2"
            stream = await host.connect()
            # A client that knows TLS 1.1 and nothing later (a ClientHello by hand: the library refuses to).
            hello = b"\x03\x02" + bytes(32) + b"\0" + b"\0\x02\xc0\x13" + b"\x01\0"
            await stream.send_all(
                b"\x16\x03\x01"
                + (len(hello) + 4).to_bytes(2, "big")
                + b"\x01"
                + len(hello).to_bytes(3, "big")
                + hello
            )
            await _gone(stream)
            assert "protocol" in refusals(host)[0]["reason"]

    trio.run(test)


@pytest.mark.parametrize(("of", "is_taken"), [("ours", True), ("sibling", False)])
def test_who_dials_trusts_an_intermediate_alone_too(tmp_path: Path, of: str, is_taken: bool) -> None:
    root = Authority(tmp_path, "root")
    authorities = {name: Authority(tmp_path, name, by=root) for name in ("ours", "sibling")}
    ours = authorities["ours"].trust
    options = sealed_options(root, authorities[of].issue("a-server"), tls_client_trust_cert_path=ours)

    dialler, node, _ = _dial(options, options)
    assert bool(dialler.of(Connected)) == bool(node.of(Received)) == is_taken


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"tls_server_cert_path": ""}, "tls.server.certPath"),
        ({"tls_server_cert_path": "/nowhere.pem"}, "/nowhere.pem: No such file"),
        ({"tls_server_need_client_auth": "OPTIONAL"}, "tls.server.trustCertPath"),
        ({"tls_client_trust_cert_path": "/nowhere.pem"}, "/nowhere.pem"),
    ],
)
def test_files_that_cannot_be_used_are_named(authority: Authority, change: dict[str, Any], told: str) -> None:
    with pytest.raises(SealingError, match=told):
        Sealing(replace(sealed_options(authority), **change))


def test_a_wrong_password_is_told_of_and_not_shown(authority: Authority) -> None:
    own = authority.issue("locked", password=PASSWORD.encode())
    with pytest.raises(SealingError) as failed:
        Sealing(sealed_options(authority, own, tls_server_key_password="another one"))
    assert "another one" not in str(failed.value)
    with pytest.raises(SealingError):
        Sealing(sealed_options(authority, own))


def test_a_close_lets_what_was_sent_leave(authority: Authority) -> None:
    def react(event: Event) -> Iterable[Effect]:
        if isinstance(event, Received):
            yield Send(event.connection, LONG)
            yield Close(event.connection)

    async def test() -> None:
        async with hosted(ScriptedNode(react), sealing=Sealing(sealed_options(authority))) as host:
            stream = await sealed_stream(host, client_context(authority))
            await stream.send_all(b"all")
            back = bytearray()
            while part := await stream.receive_some(65_536):
                back += part
            assert back == LONG

    trio.run(test)


def test_no_password_is_among_what_is_shown() -> None:
    from replispec.wire.rocketmq.parameters import ROLES

    for role in ROLES.values():
        values = {each.name: "the secret" for each in role.parameters if each.name.endswith("assword")}
        values |= {"secretKey": "the secret"}
        if role.name in ("broker", "learner"):
            values |= {"brokerName": "a"}
        shown = role.texts(role.make(values, {}))
        assert "the secret" not in shown.values()
        assert shown["tls.server.keyPassword"] == shown["secretKey"] == HIDDEN


@pytest.mark.parametrize("begins", [b"", b"\x16", b"\x16\x03\x01"], ids=["silent", "a byte", "some bytes"])
def test_a_connection_that_is_ended_before_tls_has_begun_is_closed_at_once(
    authority: Authority, begins: bytes
) -> None:
    """There is nothing to be told, and a flood of silent peers would leave many that wait."""

    async def test() -> None:
        def react(event: Event) -> Iterable[Effect]:
            """Each one ends the one before, and the third itself, too."""
            if isinstance(event, Accepted):
                yield Close(event.connection - 1)
                if event.connection == 3:
                    yield Close(3)

        bounds = Bounds(close_s=3_600)
        async with hosted(
            ScriptedNode(react), bounds=bounds, sealing=Sealing(sealed_options(authority))
        ) as host:
            with trio.fail_after(60):
                streams = []
                for _ in range(3):
                    streams.append(await host.connect())
                    await streams[-1].send_all(begins)
                for stream in streams:
                    with suppress(trio.BrokenResourceError):
                        assert await stream.receive_some(1) == b""
            assert refusals(host) == []

    run_jumping(test)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_session_ends_with_the_certificate_that_it_began_with(
    version: ssl.TLSVersion, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = sealed_options(
        authority, tls_server_need_client_auth="REQUIRE", tls_server_trust_cert_path=authority.trust
    )
    context = client_context(authority, authority.issue("short"))
    context.minimum_version = context.maximum_version = version

    def again(port: int, session: ssl.SSLSession | None) -> tuple[ssl.SSLSession | None, bool, bytes]:
        with (
            socket.create_connection(("127.0.0.1", port), 10) as sock,
            context.wrap_socket(sock, server_hostname="127.0.0.1", session=session) as sealed,
        ):
            try:
                sealed.sendall(b"said")
                heard = sealed.recv(4)
            except OSError:
                heard = b""
            return sealed.session, bool(sealed.session_reused), heard

    async def test() -> None:
        async with hosted(ScriptedNode(echo), sealing=Sealing(options)) as host:
            port = int(host.addresses["remoting"].rpartition(":")[2])
            session, _, heard = await trio.to_thread.run_sync(again, port, None)
            assert heard == b"said"
            assert (await trio.to_thread.run_sync(again, port, session))[1:] == (True, b"said")
            monkeypatch.setattr("replispec.runtime.net.sealing.time.time", lambda: YEAR_3000_S)
            assert (await trio.to_thread.run_sync(again, port, session))[1:] == (True, b"")
            (told,) = refusals(host)
            assert told["reason"] == "its certificate has expired, which it had shown when its session began"

    trio.run(test)
