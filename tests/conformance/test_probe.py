"""Before anything runs: is there a subject, and does it speak what its kind speaks? One line if not."""

import contextlib
import ssl
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio
import trio.testing

from replispec.conformance.judged import JudgedSubject
from replispec.conformance.probe import NoSubject, probe
from replispec.conformance.rocketmq.family import FAMILY
from replispec.wire.rocketmq.codes import ResponseCode
from replispec.wire.rocketmq.ha import HaHandshakeAnswer
from tests.conformance.case_files import CLOSED_ADDRESS, HOST, IDLE_S, RELEASE, Listening, always

KINDS = {"remoting": FAMILY.kind("controller"), "ha": FAMILY.kind("ha-master")}
Behaviour = Callable[[trio.SocketStream], Awaitable[None]]


def _says(data: bytes) -> Behaviour:
    async def say(stream: trio.SocketStream) -> None:
        await stream.receive_some(65536)
        await stream.send_all(data)

    return say


async def _silent(_: trio.SocketStream) -> None:
    await trio.sleep_forever()


async def _ends(stream: trio.SocketStream) -> None:
    await stream.receive_some(65536)


async def _resets(stream: trio.SocketStream) -> None:
    stream.socket.close()


def _probed(behaviour: Behaviour | None, protocol: str) -> str:
    """What the probe says of a server, with its address as HERE; empty when it takes it for a subject."""

    async def run() -> str:
        async with trio.open_nursery() as nursery:
            listeners = await trio.open_tcp_listeners(0, host=HOST)
            address = f"{HOST}:{listeners[0].socket.getsockname()[1]}"
            if behaviour is not None:
                nursery.start_soon(trio.serve_listeners, behaviour, listeners)
            said = await _said(address, protocol)
            nursery.cancel_scope.cancel()
        return said.replace(address, "HERE")

    return trio.run(run, clock=trio.testing.MockClock(autojump_threshold=IDLE_S))


async def _said(address: str, protocol: str) -> str:
    try:
        await probe(JudgedSubject({"target": address}, FAMILY, KINDS[protocol], RELEASE), address)
    except NoSubject as fault:
        return str(fault)
    return ""


@pytest.mark.parametrize(
    ("protocol", "behaviour", "told"),
    [
        ("remoting", _silent, "HERE accepts a connection but answers nothing within 5 s: no remoting?"),
        ("ha", _silent, "HERE accepts a connection but answers nothing within 5 s: no HA replication?"),
        (
            "remoting",
            _ends,
            "HERE ends the connection (in order) without an answer: it does not speak remoting",
        ),
        (
            "remoting",
            _says(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
            "HERE speaks HTTP; a controller speaks remoting",
        ),
        ("ha", _says(b"\x7f" * 64), "HERE does not speak HA replication: it answers 7f 7f"),
        ("remoting", _says(b"\x15\x03\x01\x00\x02\x02\x46"), "HERE speaks TLS; the suite speaks plain TCP"),
    ],
)
def test_what_is_no_subject_is_told_in_one_line(protocol: str, behaviour: Behaviour, told: str) -> None:
    said = _probed(behaviour, protocol)
    assert said.startswith(told)
    assert "\n" not in said


def test_a_server_that_hangs_up_at_once_is_no_subject() -> None:
    said = _probed(_resets, "remoting")
    assert "without an answer: it does not speak remoting" in said


def test_a_connection_that_is_lost_before_the_question_is_out_is_no_subject(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def lost(_: str) -> trio.abc.Stream:
        near, far = trio.testing.memory_stream_pair()
        await far.aclose()
        return near

    monkeypatch.setattr("replispec.conformance.probe.connect", lost)
    said = trio.run(_said, CLOSED_ADDRESS, "remoting")
    assert (
        said == f"{CLOSED_ADDRESS} ends the connection (reset) without an answer: it does not speak remoting"
    )


def test_a_subject_of_each_kind_is_taken() -> None:
    assert _probed(_says(HaHandshakeAnswer(max_offset=1).encode()), "ha") == ""

    async def run() -> str:
        async with trio.open_nursery() as nursery:
            said = await _said(await nursery.start(Listening(always(31999)).serve), "remoting")
            nursery.cancel_scope.cancel()
        return said

    assert trio.run(run) == ""


def test_whoever_does_not_know_the_first_command_is_another_kind_of_server() -> None:
    async def run() -> str:
        async with trio.open_nursery() as nursery:
            said = await _said(
                await nursery.start(Listening(always(ResponseCode.REQUEST_CODE_NOT_SUPPORTED)).serve),
                "remoting",
            )
            nursery.cancel_scope.cancel()
        return said

    assert "does not know CONTROLLER_GET_METADATA_INFO: it is no controller" in trio.run(run)


def test_nobody_at_the_address_is_told() -> None:
    assert trio.run(_said, CLOSED_ADDRESS, "ha").startswith(f"nobody listens at {CLOSED_ADDRESS}: ")


def test_a_server_of_tls_is_told_to_be_one(tmp_path: Path) -> None:
    made = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=x")
    files = ("-keyout", tmp_path / "key", "-out", tmp_path / "cert")
    subprocess.run([*made, *map(str, files)], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")

    async def tls(stream: trio.SocketStream) -> None:
        with contextlib.suppress(trio.BrokenResourceError):
            await trio.SSLStream(stream, context, server_side=True).do_handshake()

    assert _probed(tls, "remoting") == "HERE speaks TLS; the suite speaks plain TCP"
