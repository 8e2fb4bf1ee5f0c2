"""Metrics and health on real sockets: readers that are slow, silent, many or wrong hold nobody up."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
import trio

from lab.certificates import Authority
from replispec.runtime.net.clock import Clock
from replispec.runtime.net.host_shell import Process, serve
from replispec.runtime.net.log_shell import Log
from replispec.runtime.net.sealing import Sealing
from replispec.runtime.net.seen_shell import CONNECTIONS_MAX, VIEWERS_MAX
from replispec.runtime.primitives.latencies import Latencies
from replispec.runtime.primitives.metrics import GAUGE, HISTOGRAM, Metric, Sample
from replispec.runtime.seeing.http import REQUEST_BYTES_MAX
from replispec.runtime.world import (
    Accepted,
    Effect,
    Event,
    Level,
    Member,
    Note,
    Numbers,
    ReadyCheck,
    Received,
    Started,
)
from tests.runtime.net.hosted import ScriptedNode, run_jumping, until
from tests.runtime.net.sealed_peers import sealed_options

EVENTS = Metric("x_events", GAUGE, "Events.")
REFUSED = Metric("x_refused", GAUGE, "Connections that were not taken.")


class _View:
    """A node that is ready when a test says so."""

    has_picture = True
    write_buckets: Sequence[float] = (1.0,)
    latencies: Latencies | None = None

    def __init__(self) -> None:
        self.is_ready = True
        self.is_broken = False
        self.shown: dict[str, object] = {"sets": []}

    def who(self) -> Mapping[str, object]:
        return {"broker_name": "b", "broker_id": 7, "port": 1}

    def began(self) -> Mapping[str, object]:
        return {"log_end": 5}

    def shared(self) -> Mapping[str, str]:
        return {}

    def samples(self, numbers: Numbers) -> Iterable[Sample]:
        yield EVENTS.of(numbers.events / (not self.is_broken))
        if numbers.refused:
            yield REFUSED.of(numbers.refused)

    def checks(self) -> Sequence[ReadyCheck]:
        return (ReadyCheck("leader", self.is_ready, "n1 leads" if self.is_ready else "nobody leads"),)

    def picture(self) -> Mapping[str, object]:
        return self.shown


class _Seen:
    def __init__(self, address: str, view: _View, log: io.StringIO, node: ScriptedNode) -> None:
        self.host, _, port = address.rpartition(":")
        self.port = int(port)
        self.view, self._log, self.node = view, log, node
        self.served = ""

    @property
    def lines(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self._log.getvalue().splitlines()]

    async def open(self) -> trio.SocketStream:
        return await trio.open_tcp_stream(self.host, self.port)

    async def get(self, path: str, method: str = "GET") -> tuple[int, bytes]:
        async with await self.open() as stream:
            await stream.send_all(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            return _parted(await _all(stream))


async def _all(stream: trio.SocketStream) -> bytes:
    found = b""
    while part := await stream.receive_some(65_536):
        found += part
    return found


def _parted(answer: bytes) -> tuple[int, bytes]:
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


@asynccontextmanager
async def seen(*notes: Note, sealing: Sealing | None = None) -> AsyncIterator[_Seen]:
    def react(event: Event) -> Iterable[Effect]:
        return notes if isinstance(event, Started) else ()

    node, view, written, stop = ScriptedNode(react), _View(), io.StringIO(), trio.Event()
    clock, addresses = Clock(), list[str]()
    log = Log(written, Level.DEBUG, clock.now_us)
    process = Process(seen_at=["127.0.0.1:0"], sealing=sealing)
    members = [Member("role", node, view=view)]
    run = partial(serve, members, process, log, clock=clock, stop=stop, seen_at=addresses)
    async with trio.open_nursery() as nursery:
        listens = await nursery.start(run)
        one = _Seen(addresses[0], view, written, node)
        one.served = listens["role"]["remoting"]
        yield one
        stop.set()


@pytest.mark.trio
async def test_each_connection_that_does_not_begin_with_tls_is_counted(tmp_path: Path) -> None:
    """A line tells of the first of them; who looks at the metrics sees how many there were."""
    async with seen(sealing=Sealing(sealed_options(Authority(tmp_path)))) as one:
        host, _, port = one.served.rpartition(":")
        for _ in range(5):
            async with await trio.open_tcp_stream(host, int(port)) as stream:
                await stream.send_all(b"GET / HTTP/1.1\r\n\r\n")
                with suppress(trio.BrokenResourceError):
                    assert await _all(stream) == b""
        _, body = await one.get("/metrics")
        assert b"\nx_refused 5" in body


@pytest.mark.trio
async def test_metrics_health_and_readiness_are_answered() -> None:
    async with seen() as one:
        assert await one.get("/metrics") == (
            200,
            b"# HELP x_events Events.\n# TYPE x_events gauge\nx_events 1.0\n",
        )
        status, body = await one.get("/healthz")
        assert (status, json.loads(body)["alive"]) == (200, True)
        status, body = await one.get("/readyz")
        assert (status, json.loads(body)["ready"]) == (200, True)
        one.view.is_ready = False
        status, body = await one.get("/readyz")
        assert (status, json.loads(body)["checks"]["role"]["leader"]) == (
            503,
            {"ok": False, "reason": "nobody leads"},
        )
        assert (await one.get("/none"))[0] == 404
        assert (await one.get("/metrics", "POST"))[0] == 405
        assert await one.get("/metrics", "HEAD") == (200, b"")


@pytest.mark.trio
async def test_every_line_says_who_says_it_and_the_first_and_last_frame_them() -> None:
    async with seen(Note(Level.INFO, "something", {"master": 1})) as one:
        await one.get("/healthz")
    something, started, stopped = one.lines
    assert (something["what"], something["broker_name"], something["broker_id"], something["port"]) == (
        "something",
        "b",
        7,
        1,
    )
    assert (started["what"], started["log_end"], started["broker_id"]) == ("started", 5, 7)
    assert (stopped["what"], stopped["broker_id"]) == ("stopped", 7)


@pytest.mark.trio
async def test_a_request_that_is_too_long_is_refused_and_ends() -> None:
    async with seen() as one, await one.open() as stream:
        await stream.send_all(b"GET / HTTP/1.1\r\nX: " + b"a" * REQUEST_BYTES_MAX)
        assert _parted(await _all(stream))[0] in (400, 431)


def test_whoever_asks_nothing_is_hung_up_on() -> None:
    async def main() -> None:
        async with seen() as one, await one.open() as stream:
            await stream.send_all(b"GET / HT")
            assert await stream.receive_some(10) == b""

    run_jumping(main)


def test_a_viewer_that_reads_nothing_is_hung_up_on() -> None:
    async def main() -> None:
        async with seen() as one, await one.open() as stream:
            await stream.send_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            size = 1 << 20
            for number in range(40):
                one.view.shown = {"sets": "x" * size, "number": number}
                await trio.sleep(0.3)
            await trio.sleep(15)
            found = b""
            try:
                while part := await stream.receive_some(1 << 20):
                    found += part
            except trio.BrokenResourceError:
                pass
            assert len(found) < 40 * size

    run_jumping(main)


@pytest.mark.trio
async def test_health_is_answered_before_whoever_is_silent_whose_number_has_a_bound() -> None:
    async with seen() as one:
        streams = [await one.open() for _ in range(2 * CONNECTIONS_MAX)]
        # Nobody of them has asked, and none has left.
        for _ in range(3):
            status, _ = await one.get("/healthz")
            assert status == 200
        with trio.fail_after(60):
            # Who came first went first.
            for stream in streams[:CONNECTIONS_MAX]:
                with suppress(trio.BrokenResourceError):
                    assert await stream.receive_some(1) == b""
        status, _ = await one.get("/readyz")
        assert status == 200
        told = [line for line in one.lines if line["what"] == "too many readers of metrics and health"]
        assert len(told) == 1
        for stream in streams:
            await stream.aclose()


@pytest.mark.trio
async def test_a_viewer_is_told_of_lines_and_changes_and_viewers_have_a_bound() -> None:
    async with seen(Note(Level.INFO, "before", {"broker": "a"})) as one:
        streams = [await one.open() for _ in range(VIEWERS_MAX)]
        for stream in streams:
            await stream.send_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        heard = b""
        while b'"before"' not in heard or b'"sets":[]' not in heard:
            heard += await streams[0].receive_some(65_536)
        one.view.shown = {"sets": ["new"]}
        while b'"sets":["new"]' not in heard:
            heard += await streams[0].receive_some(65_536)
        for stream in streams[1:]:
            await stream.receive_some(65_536)
        status, _ = await one.get("/events")
        assert status == 503
        for stream in streams:
            await stream.aclose()
        served: list[int] = []

        async def look() -> None:
            async with await one.open() as again:
                await again.send_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
                served.append(_parted(await again.receive_some(65_536))[0])

        while 200 not in served:
            await look()
        assert set(served) <= {200, 503}


@pytest.mark.trio
async def test_a_fault_of_what_is_shown_ends_no_role() -> None:
    async with seen() as one:
        one.view.is_broken = True
        async with await one.open() as stream:
            await stream.send_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert await _all(stream) == b""
        assert (await one.get("/healthz"))[0] == 200
        (told,) = [line for line in one.lines if line["what"] == "what is asked cannot be shown"]
        assert (told["level"], told["reason"]) == ("error", "ZeroDivisionError: division by zero")


@pytest.mark.trio
async def test_a_look_changes_nothing_of_the_node() -> None:
    async with seen() as one:
        await until(lambda: len(one.node.events) == 1)
        for path in ("/metrics", "/healthz", "/readyz", "/"):
            await one.get(path)
        assert len(one.node.events) == 1


@pytest.mark.trio
@pytest.mark.parametrize(
    "accept",
    [
        b"application/openmetrics-text; version=abc",
        b"application/openmetrics-text; version=1..0",
        b"application/openmetrics-text; version=1.\xa00.0",
        b"application/openmetrics-text; version=" + b"9" * 5_000,
        b"text/plain; version=abc",
        b"text/plain; version=1.\xff",
    ],
    ids=["word", "empty part", "odd blank", "long", "word of text", "no ASCII"],
)
async def test_metrics_are_plain_text_for_whoever_accepts_what_there_is_not(accept: bytes) -> None:
    async with seen() as one, await one.open() as stream:
        await stream.send_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: " + accept + b"\r\n\r\n")
        status, body = _parted(await _all(stream))
        assert status == 200
        assert body == b"# HELP x_events Events.\n# TYPE x_events gauge\nx_events 1.0\n"
        assert not [line for line in one.lines if line["level"] == "error"]


@pytest.mark.trio
async def test_a_request_takes_from_its_own_event_to_the_end_of_the_one_that_answers_it() -> None:
    took = Latencies(Metric("x_took", HISTOGRAM, "Took.", unit="milliseconds", buckets=(50.0,)))
    view, stop, began = _View(), trio.Event(), list[float]()
    view.latencies = took

    def react(event: Event) -> Iterable[Effect]:
        if isinstance(event, Accepted):
            began.append(took.began_s)
        if isinstance(event, Received):
            took.answered("late", began[0])
        return ()

    node, clock = ScriptedNode(react), Clock()
    log = Log(io.StringIO(), Level.DEBUG, clock.now_us)
    run = partial(serve, [Member("role", node, view=view)], Process(), log, clock=clock, stop=stop)
    async with trio.open_nursery() as nursery:
        addresses = await nursery.start(run)
        host, _, port = addresses["role"]["remoting"].rpartition(":")
        async with await trio.open_tcp_stream(host, int(port)) as stream:
            await stream.send_all(b"late")
            await until(lambda: bool(node.of(Received)))
        stop.set()
    (late,) = [each for kind, each in took.took.items() if kind == "late"]
    assert sum(late.counts) == 1
    assert late.total > 0
    assert not took.is_waiting
