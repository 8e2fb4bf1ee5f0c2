"""What a process records of itself is a capture like any other, and holds exactly what travelled."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
import trio

from replispec.cli.frame_rows import rows
from replispec.replay.engines.decoding import decode_capture
from replispec.replay.frames.hints import Hints
from replispec.runtime.net.tap_shell import FILE_HEADER, SEGMENT_BYTES_MAX, FileTap, TapError
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.world import Close, Connected, Dial, Effect, Event, Received, Send, Started
from replispec.wire.rocketmq.codes import RemotingFlag, RequestCode, ResponseCode
from replispec.wire.rocketmq.remoting import RemotingHeader
from tests.runtime.net.hosted import ScriptedNode, hosted, until

BODY = b"b" * (3 * SEGMENT_BYTES_MAX)


def _frame(opaque: int, *, answer: bool, body: bytes = b"") -> bytes:
    code = ResponseCode.SUCCESS if answer else RequestCode.CONTROLLER_GET_METADATA_INFO
    flag = RemotingFlag.RESPONSE if answer else RemotingFlag.REQUEST
    header = RemotingHeader(code=int(code), language="PYTHON", version=0, opaque=opaque, flag=flag)
    return Command(header, body).encode()


class _Times:
    """Microseconds that pass one by one."""

    def __init__(self) -> None:
        self.now = 1_700_000_000_000_000

    def __call__(self) -> int:
        self.now += 1
        return self.now


def _tap(path: Path, *, accepted_only: bool = False, bytes_max: int = 2**40) -> tuple[FileTap, list[str]]:
    said: list[str] = []
    tap = FileTap(path, _Times(), accepted_only=accepted_only, bytes_max=bytes_max, failed=said.append)
    return tap, said


def _decoded(path: Path) -> list[dict[str, object]]:
    decoded = decode_capture(path, Hints())
    assert decoded.warnings == ()
    return [dict(row) for row in rows(decoded, by_time=True)]


def _exchange(path: Path, *, accepted_only: bool = False, address: str = "127.0.0.1") -> None:
    """Two requests, the second one in pieces; two answers in one write; a long body."""
    answers = [_frame(1, answer=True), _frame(2, answer=True, body=BODY)]
    requests = _frame(1, answer=False) + _frame(2, answer=False)
    received = bytearray()

    def react(event: Event) -> Iterable[Effect]:
        if isinstance(event, Received):
            received.extend(event.data)
            if len(received) == len(requests):
                yield from (Send(event.connection, answer) for answer in answers)
                yield Close(event.connection)

    async def test() -> None:
        tap, said = _tap(path, accepted_only=accepted_only)
        node = ScriptedNode(react, listeners={"remoting": f"{address}:0"})
        async with hosted(node, tap=tap) as host:
            if accepted_only:
                dialling = ScriptedNode(_dialling(host.addresses["remoting"], requests), listeners={})
                async with hosted(dialling, tap=tap):
                    await until(lambda: len(received) == len(requests))
            else:
                host_name, _, port = host.addresses["remoting"].rpartition(":")
                async with await trio.open_tcp_stream(host_name.strip("[]"), int(port)) as stream:
                    for at in range(0, len(requests), 100):
                        await stream.send_all(requests[at : at + 100])
                    async for _ in stream:
                        pass
        tap.close()
        assert said == []

    trio.run(test)


def _dialling(address: str, data: bytes) -> Callable[[Event], Iterable[Effect]]:
    def react(event: Event) -> Iterable[Effect]:
        if isinstance(event, Started):
            yield Dial(-1, address)
        elif isinstance(event, Connected):
            yield Send(-1, data)

    return react


@pytest.mark.parametrize("address", ["127.0.0.1", "[::1]"])
def test_a_recording_decodes_to_the_frames_that_travelled(address: str, tmp_path: Path) -> None:
    path = tmp_path / "tap.pcap"
    _exchange(path, address=address)
    found = [(row["opaque"], row["body_size"], row["flag"]) for row in _decoded(path)]
    assert found == [(1, 0, 0), (2, 0, 0), (1, 0, 1), (2, len(BODY), 1)]


def test_only_what_was_accepted_is_recorded_when_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "tap.pcap"
    _exchange(path, accepted_only=True)
    assert len(_decoded(path)) == 4


def test_a_restart_carries_on_after_the_last_whole_record(tmp_path: Path) -> None:
    path = tmp_path / "tap.pcap"
    _exchange(path)
    whole = path.read_bytes()
    with path.open("ab") as file:
        file.write(whole[len(FILE_HEADER) : len(FILE_HEADER) + 30])
    _tap(path)[0].close()
    assert path.read_bytes() == whole
    _exchange(path)
    assert path.read_bytes().startswith(whole)
    assert len(_decoded(path)) == 8


def test_a_file_that_is_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(b"something that is longer than a header of a capture")
    with pytest.raises(TapError, match=r"notes\.txt"):
        _tap(path)
    assert path.read_bytes().startswith(b"something")


def test_a_recording_ends_at_its_bound_and_says_so_once(tmp_path: Path) -> None:
    path = tmp_path / "tap.pcap"
    tap, said = _tap(path, bytes_max=1000)
    handle = tap.opened("127.0.0.1:1", "127.0.0.1:2", dialled=False)
    for _ in range(5):
        tap.sent(handle, bytes(400))
    assert path.stat().st_size <= 1000
    assert len(said) == 1


@pytest.mark.parametrize(("by_peer", "broken"), [(True, False), (False, False), (False, True)])
def test_numbers_are_those_of_a_real_stream(by_peer: bool, broken: bool, tmp_path: Path) -> None:
    """A decoder that checks holes and overlaps has no complaint, whoever ends the connection."""
    path = tmp_path / "tap.pcap"
    tap, _ = _tap(path)
    handle = tap.opened("127.0.0.1:1", "127.0.0.1:2", dialled=True)
    tap.sent(handle, _frame(7, answer=False))
    tap.received(handle, _frame(7, answer=True))
    tap.closed(handle, by_peer=by_peer, broken=broken)
    again = tap.opened("127.0.0.1:1", "127.0.0.1:2", dialled=True)
    tap.sent(again, _frame(8, answer=False))
    assert [row["opaque"] for row in _decoded(path)] == [7, 7, 8]
