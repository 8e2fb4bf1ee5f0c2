"""What is wanted of a table keeps work away: counted in packets, bytes, frames and rows, never in time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from replispec.replay.capture.files import open_capture
from replispec.replay.engines import source_tables
from replispec.replay.engines.decoding import decode_capture
from replispec.replay.engines.source_frames import Read, Share, frame_batches
from replispec.replay.engines.source_tables import packet_batches, window_of
from replispec.replay.engines.wanted import ALL, Relation, Term, Wanted
from replispec.replay.frames import tables
from replispec.replay.frames.family import MessageColumns
from replispec.replay.frames.hints import Hints
from replispec.replay.frames.tables import FRAMES, FRAMES_ORDER
from tests.replay.pcap_writer import Conversation, pcap
from tests.replay.random_traffic import Harm, command, random_capture

CAPTURES = Path(__file__).parents[2] / "spark_replay" / "captures"
CAPTURE = CAPTURES / "failover_lost.pcap"
ORDER = [(name, "ascending") for name in FRAMES_ORDER]
HARM = Harm(lost=0.03, repeated=0.05, reordered=0.1, cut=0.05, headless=0.3)


def frames(path: Path, wanted: Wanted = ALL, **given: Any) -> tuple[pa.Table, Read]:
    read = Read()
    found = list(frame_batches(path, Hints(), wanted=wanted, read=read, **given))
    return pa.Table.from_batches(found), read


def where(*terms: tuple[Any, ...]) -> Wanted:
    return Wanted(tuple(Term(*term) for term in terms))


@pytest.mark.parametrize("path", sorted(CAPTURES.glob("*.pcap")), ids=lambda path: path.stem)
def test_shares_together_are_the_capture(path: Path) -> None:
    parts = [frames(path, share=Share(number, 3)) for number in range(3)]
    whole, read = frames(path)
    assert whole.equals(decode_capture(path).frames)
    assert pa.concat_tables([table for table, _ in parts]).sort_by(ORDER).equals(whole)
    assert sum(part.payload_bytes for _, part in parts) == read.payload_bytes
    assert sum(part.packets for _, part in parts) == read.packets


def test_shares_of_damaged_traffic_together_are_the_capture(tmp_path: Path) -> None:
    for seed in range(5):
        path = tmp_path / f"{seed}.pcap"
        path.write_bytes(pcap(random_capture(seed, HARM, talks=4)))
        parts = [frames(path, share=Share(number, 2))[0] for number in range(2)]
        assert pa.concat_tables(parts).sort_by(ORDER).equals(decode_capture(path).frames)


def test_shares_are_even() -> None:
    sizes = [frames(CAPTURE, share=Share(number, 2))[1].payload_bytes for number in range(2)]
    assert min(sizes) > 0.4 * sum(sizes), sizes


TRUTH = decode_capture(CAPTURE).frames
SOME = TRUTH.slice(TRUTH.num_rows // 2, 1).to_pylist()[0]
TIMES = sorted(TRUTH["time_ns"].to_pylist())


@pytest.mark.parametrize(
    ("wanted", "most"),
    [
        (where(("connection", Relation.EQUAL, (SOME["connection"],))), 0.2),
        (where(("source", Relation.EQUAL, (SOME["source"],))), 0.5),
        (where(("direction", Relation.EQUAL, (1,))), 0.9),
        (where(("protocol", Relation.STARTS, ("remoting",), True)), 0.9),
        (where(("message", Relation.MISSING, (), True)), 0.9),
        (where(("code", Relation.ONE_OF, (105, 1005))), 0.97),
        (where(("time_ns", Relation.LESS, (TIMES[len(TIMES) // 20],))), 0.9),
        (where(("code", Relation.EQUAL, (105,)), ("message", Relation.EQUAL, ("HaReport",))), 0.0),
    ],
    ids=lambda value: value.terms[0].column if isinstance(value, Wanted) else "",
)
def test_frames_that_cannot_be_wanted_are_not_decoded(wanted: Wanted, most: float) -> None:
    found, read = frames(CAPTURE, wanted)
    everything = frames(CAPTURE)[1]
    expected = [row for batch in TRUTH.to_batches() for row in wanted.kept(batch).to_pylist()]
    assert found.to_pylist() == expected
    assert bool(expected) is (most > 0)
    assert read.payload_bytes <= most * everything.payload_bytes
    assert read.frames <= most * everything.frames


@pytest.mark.parametrize("column", ["source", "connection"])
def test_packets_of_other_connections_are_not_put_together(column: str) -> None:
    wanted = where((column, Relation.EQUAL, (SOME[column],)))
    assert 0 < frames(CAPTURE, wanted)[1].packets < 0.5 * frames(CAPTURE)[1].packets


def test_a_later_connection_of_the_same_endpoints_is_found(tmp_path: Path) -> None:
    ends = ("10.0.0.9", 40_000), ("10.0.0.3", 10_911)
    first = Conversation(*ends).open().send(command(1) + command(2), from_client=True).close()
    second = Conversation(*ends, client_initial=2**31, time_ns=first.time_ns).open()
    second.send(command(3) + command(4), from_client=True)
    path = tmp_path / "twice.pcap"
    path.write_bytes(pcap([*first.packets, *second.packets]))
    names = decode_capture(path).frames["connection"].to_pylist()
    assert sorted({name.rpartition("#")[2] for name in names}) == ["1", "2"]
    for name in set(names):
        found, read = frames(path, where(("connection", Relation.EQUAL, (name,))))
        assert found["connection"].to_pylist() == [name] * names.count(name)
        assert read.frames == names.count(name)


def test_columns_that_are_not_named_are_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def noted(columns: MessageColumns, *rest: Any) -> Any:
        made.extend(field.name for field in columns.fields)
        return messages(columns, *rest)

    messages = tables._messages
    monkeypatch.setattr(tables, "_messages", noted)
    few = list(frame_batches(CAPTURE, Hints(), ("time_ns", "protocol")))
    assert not made
    assert pa.Table.from_batches(few).equals(TRUTH.select(["time_ns", "protocol"]))
    whole = list(frame_batches(CAPTURE, Hints()))
    assert {"code", "message"} <= set(made)
    assert sum(batch.nbytes for batch in few) < 0.2 * sum(batch.nbytes for batch in whole)
    assert [batch.schema.names for batch in whole] == [FRAMES.names] * len(whole)


def test_texts_of_addresses_are_made_of_packets_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[tuple[int, int]] = []

    def noted(high: int, low: int) -> str:
        texts.append((high, low))
        return f"{high}.{low}"

    monkeypatch.setattr(source_tables, "address_text", noted)
    with open_capture(CAPTURE) as capture:
        split = capture.whole
    port = int(SOME["source"].rpartition(":")[2])
    wanted = where(("source_port", Relation.EQUAL, (port,)))
    found = pa.Table.from_batches(packet_batches(split, "x", ("source", "source_port"), wanted))
    every = pa.Table.from_batches(packet_batches(split, "x", ("source_port",)))
    expected = every["source_port"].to_pylist().count(port)
    assert 0 < expected == found.num_rows == len(texts) < every.num_rows
    assert found.column_names == ["source", "source_port"]


def test_borders_of_a_number() -> None:
    terms = where(
        ("time_ns", Relation.MORE, (10,)),
        ("time_ns", Relation.AT_MOST, (30,)),
        ("time_ns", Relation.EQUAL, (5,), True),
    )
    assert terms.borders("time_ns") == (11, 30)
    assert window_of(terms).from_ns == 11
    assert window_of(terms).until_ns == 31
    assert where(("time_ns", Relation.ONE_OF, (4, 9))).borders("time_ns") == (4, 9)
    assert window_of(ALL).from_ns is None


@pytest.mark.parametrize(
    ("term", "kept"),
    [
        (("code", Relation.EQUAL, (2,)), [2]),
        (("code", Relation.EQUAL, (2,), True), [1, 3]),
        (("code", Relation.ONE_OF, (1, 2**40)), [1]),
        (("code", Relation.ONE_OF, (1,), True), [2, 3]),
        (("code", Relation.AT_LEAST, (2,)), [2, 3]),
        (("code", Relation.MISSING, ()), [None]),
        (("code", Relation.MISSING, (), True), [1, 2, 3]),
        (("name", Relation.CONTAINS, ("%",)), [2]),
        (("name", Relation.ENDS, ("b",), True), [2, None]),
    ],
)
def test_a_term_fits_rows_as_in_sql(term: tuple[Any, ...], kept: list[int | None]) -> None:
    rows = pa.record_batch(
        {"code": pa.array([1, 2, 3, None], pa.int32()), "name": ["ab", "a%c", None, "x"]},
    )
    assert where(term).kept(rows)["code"].to_pylist() == kept
