"""How long requests waited: pairs become durations, durations percentiles by request code."""

from __future__ import annotations

from pathlib import Path

import pytest

from replispec.replay.engines.decoding import decode_capture
from replispec.replay.events.capture_events import CaptureEvents
from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.observe import observe
from replispec.replay.events.rocketmq import durations as durations_module
from replispec.replay.events.tables import to_tables
from replispec.replay.report.model import Latency
from replispec.replay.report.rocketmq.latencies import latencies
from replispec.wire.rocketmq import remoting
from tests.replay.event_rows import from_tables
from tests.replay.pcap_writer import Conversation, pcap
from tests.replay.random_traffic import command

CAPTURES = Path(__file__).parents[2] / "spark_replay/captures"
CLIENT, BROKER = ("10.0.0.9", 40_000), ("10.0.0.2", 10_911)
MS = 1_000_000


def observed(path: Path) -> list[Observation]:
    decoded = decode_capture(path)
    return from_tables(observe(decoded.frames, decoded.holes, decoded.streams))


def talked(folder: Path, waits_ms: list[int], unanswered: int = 0, code: int = 310) -> list[Observation]:
    """The observations of one connection with requests of `code` that waited so long for their answers."""
    talk = Conversation(CLIENT, BROKER).open()
    for opaque, wait in enumerate(waits_ms):
        talk.send(command(opaque, code=code), from_client=True)
        talk.time_ns += (wait - 1) * MS
        talk.send(command(opaque, answer=True), from_client=False)
    for opaque in range(unanswered):
        talk.send(command(1000 + opaque, code=code), from_client=True)
    one_way = remoting.RemotingHeader(code=code, opaque=9999, flag=2, version=493).encode_json()
    talk.send(remoting.RemotingFrame(serialize_type=0, header=one_way).encode(), from_client=True)
    path = folder / "made.pcap"
    path.write_bytes(pcap(talk.packets, nanoseconds=True))
    return observed(path)


def test_percentiles_are_times_that_were_seen(tmp_path: Path) -> None:
    rows = talked(tmp_path, [*range(1, 100), 5000], unanswered=3)
    (latency,) = latencies("made.pcap", CaptureEvents(to_tables(rows)))
    assert latency == Latency(
        "made.pcap", 310, "SEND_MESSAGE_V2", 100, 3, 50 * MS, 95 * MS, 99 * MS, 5000 * MS
    )


def test_a_code_that_nobody_answered_has_no_times(tmp_path: Path) -> None:
    rows = talked(tmp_path, [], unanswered=2, code=29_999)
    (latency,) = latencies("made.pcap", CaptureEvents(to_tables(rows)))
    assert latency == Latency("made.pcap", 29_999, "", 0, 2, None, None, None, None)


def test_many_durations_take_several_rows_and_nothing_is_counted_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durations_module, "DURATIONS_MAXIMUM", 7)
    rows = talked(tmp_path, list(range(1, 31)), unanswered=1)
    parts = [row for row in rows if row.kind == ObservationKind.LATENCY]
    assert [len(row.durations_ns or ()) for row in parts] == [7, 7, 7, 7, 2]
    assert [row.index for row in parts] == [0, 1, 2, 3, 4]
    (latency,) = latencies("made.pcap", CaptureEvents(to_tables(rows)))
    assert (latency.answered, latency.unanswered, latency.max_ns) == (30, 1, 30 * MS)
    assert from_tables(to_tables(parts)) == parts


def test_of_a_real_capture_every_pair_is_counted_and_told_rows_carry_their_duration() -> None:
    rows = observed(CAPTURES / "failover_lost.pcap")
    found = latencies("failover_lost.pcap", CaptureEvents(to_tables(rows)))
    paired = sum(row.evaluated or 0 for row in rows if row.kind == ObservationKind.PAIRED)
    assert sum(latency.answered for latency in found) == paired
    assert [latency.code for latency in found] == sorted(latency.code for latency in found)
    sends = next(latency for latency in found if latency.name == "SEND_MESSAGE_V2")
    waited = [row.duration_ns for row in rows if row.kind == ObservationKind.ACKNOWLEDGED]
    assert len(waited) == sends.answered == 370
    assert max(duration or 0 for duration in waited) == sends.max_ns == 84_085_000
    assert all(
        row.duration_ns is None for row in rows if row.kind in (ObservationKind.BATCH, ObservationKind.ALIVE)
    )
