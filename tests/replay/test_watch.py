"""A watch that is killed and started again comes to what a replay of the same files comes to."""

from __future__ import annotations

import os
import random
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replispec.replay.capture.files import open_capture
from replispec.replay.capture.records import Window
from replispec.replay.engines import run
from replispec.replay.engines.decoding import decode_capture
from replispec.replay.engines.results import SUMMARY_NAME, CaptureResult, Options
from replispec.replay.engines.run import told
from replispec.replay.report.summary import CaptureRow, Summary
from replispec.replay.watch.alerts import Alerts
from replispec.replay.watch.bounded import bounded_results
from replispec.replay.watch.stretches import observed
from replispec.replay.watch.watcher import Bounds
from tests.replay.pcap_writer import pcap, pcapng
from tests.replay.random_traffic import Harm, random_capture
from tests.replay.test_rotation import HARMS, ORDERS, in_parts
from tests.replay.watching import CAPTURES, LOCAL, Watched, cut, grow

NAMES = sorted(path.name for path in CAPTURES.glob("*.pcap"))
WITH_LOSSES = ("failover_lost.pcap", "hung_master.pcap", "power_cut.pcap")


@pytest.mark.parametrize("name", NAMES)
def test_killed_at_every_border_a_watch_ends_with_the_rows_and_verdicts_of_a_replay(
    tmp_path: Path, name: str
) -> None:
    rng = random.Random(name)
    watched = Watched(tmp_path / "watched")
    sources = cut(CAPTURES / name, tmp_path / "sources", rng.randrange(3, 7), rng)
    for number, source in enumerate(sources):
        for _ in grow(watched.folder / source.name, source.read_bytes(), rng, rng.randrange(1, 4)):
            watched.look()
        if number > 1:
            until_read(watched, sources[number - 2])
    watched.end()
    watched.assert_replayed(sources)


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(HARMS), st.booleans())
def test_however_a_folder_is_fed_the_rows_are_those_of_a_replay(seed: int, harm: Harm, blocks: bool) -> None:
    rng = random.Random(seed)
    write = pcapng if blocks else pcap
    parts = [write(part) for part in in_parts(random_capture(seed, harm, talks=3), rng)]
    with TemporaryDirectory() as folder:
        bounds = Bounds(
            rng.choice([3_000, 10**6]), rng.choice([1, 2_000, 10**6]), share=rng.choice([1, 10**6])
        )
        watched = Watched(Path(folder) / "watched", bounds)
        sources = [Path(folder) / f"made.pcap{at or ''}" for at in range(len(parts))]
        for source, part in zip(sources, parts, strict=True):
            source.write_bytes(part)
            for _ in grow(watched.folder / source.name, part, rng, rng.randrange(1, 5)):
                if rng.random() < 0.6:
                    watched.step() if rng.random() < 0.3 else watched.look()
            if rng.random() < 0.4:
                until_read(watched, source)
        watched.end()
        watched.assert_replayed(sources)


def until_read(watched: Watched, source: Path) -> None:
    """Remove a file once it is read, as a ring does when another one was begun."""
    with watched.opened() as watcher:
        while (file := watcher.ledger.files.get(source.name)) is None or file.kept < source.stat().st_size:
            watcher.look()
        if watcher.ledger.last is not file:
            (watched.folder / source.name).unlink()


class KilledError(BaseException):
    """What no handler of ours catches: the process is gone."""


def test_killed_at_any_write_a_watch_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = cut(CAPTURES / "power_cut.pcap", tmp_path / "sources", 3, random.Random(4))
    watched = Watched(tmp_path / "watched", Bounds())
    flush, left = os.fsync, [1 << 30]

    def flushed(descriptor: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise KilledError
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", flushed)
    kills = 0
    for source in sources:
        (watched.folder / source.name).write_bytes(source.read_bytes())
        for writes in range(1000):
            left[0] = writes
            try:
                watched.step()
            except KilledError:
                kills += 1
            else:
                break
    left[0] = 1 << 30
    assert kills > 30
    summary = watched.end()
    assert_told_once(watched, summary)
    watched.assert_replayed(sources)


def assert_told_once(watched: Watched, summary: Summary) -> None:
    """Every loss and violation has its alert, none has two."""
    shown = watched.shown()
    assert len({line["id"] for line in shown}) == len(shown)
    assert sum(line["messages"] for line in shown if line["kind"] == "loss") == sum(
        loss.acknowledged for loss in summary.losses
    )
    assert [line for line in shown if line["kind"] == "withdrawn"] == []


@pytest.mark.parametrize("name", WITH_LOSSES)
def test_every_lost_message_is_told_once_though_the_watch_is_killed_behind_every_file(
    tmp_path: Path, name: str
) -> None:
    watched = Watched(tmp_path / "watched", Bounds())
    alerts = []
    for source in cut(CAPTURES / name, tmp_path / "sources", 6, random.Random(name)):
        (watched.folder / source.name).write_bytes(source.read_bytes())
        with watched.opened() as watcher:
            more = True
            while more:
                found = watcher.step()
                alerts += [alert.line for alert in found.alerts]
                more = found.more
    assert any(line["kind"] == "loss" for line in alerts), "told only at the end"
    summary = watched.end()
    assert_told_once(watched, summary)
    assert watched.shown()[: len(alerts)] == alerts
    assert summary.losses


def test_a_stretch_that_moves_on_tells_nothing_twice_and_says_that_it_does(tmp_path: Path) -> None:
    watched = Watched(tmp_path / "watched", Bounds(segment=30_000, stretch=400_000))
    said = []
    for source in cut(CAPTURES / "failover_lost.pcap", tmp_path / "sources", 7, random.Random(1)):
        (watched.folder / source.name).write_bytes(source.read_bytes())
        with watched.opened() as watcher:
            said += watcher.step().said
    assert any("more than 400000 bytes were captured" in line for line in said)
    assert_told_once(watched, watched.end())


def test_an_alert_that_a_crash_kept_from_being_shown_is_shown_by_the_next_watch(tmp_path: Path) -> None:
    watched = Watched(tmp_path / "watched", Bounds())
    (watched.folder / "a.pcap").write_bytes((CAPTURES / "power_cut.pcap").read_bytes())
    watched.step()
    path = watched.out / "alerts.jsonl"
    whole = path.read_bytes()
    assert len(whole.splitlines()) > 1
    path.write_bytes(whole[:-20])
    watched.step()
    assert path.read_bytes() == whole


def test_what_the_whole_capture_does_not_show_is_taken_back_once(tmp_path: Path) -> None:
    watched = Watched(tmp_path / "watched", Bounds())
    (watched.folder / "a.pcap").write_bytes((CAPTURES / "hung_master.pcap").read_bytes())
    assert watched.step()
    alerts = Alerts(watched.checkpoint / "alerts", watched.out / "alerts.jsonl")
    told = len(alerts)
    back = alerts.settle(CaptureResult(CaptureRow("a.pcap")))
    assert len(back) == told
    assert all(alert.line["kind"] == "withdrawn" for alert in back)
    assert alerts.settle(CaptureResult(CaptureRow("a.pcap"))) == []


def test_a_stretch_within_a_later_file_is_read_from_that_file(tmp_path: Path) -> None:
    """The last stretch tells what a capture tells that begins there."""
    watched = Watched(tmp_path / "watched", Bounds(segment=60_000))
    sources = cut(CAPTURES / "power_cut.pcap", tmp_path / "sources", 3, random.Random(2))
    for source in sources:
        (watched.folder / source.name).write_bytes(source.read_bytes())
    watched.look()
    with watched.opened() as watcher:
        captures = watched.checkpoint / "captures"
        last = [each for each in watcher.ledger.segments if each.file == sources[-1].name]
        assert len(last) > 1
        assert last[0].base > 0
        splits = {each.number: each.split(str(captures / each.file), sources[0].name) for each in last}
        found: list[pa.Table] = []
        observed(splits, watcher.kept, found.append)
    names = ["connection", "direction", "sequence", "index", "time_ns", "code", "opaque", "body_digest"]
    expected = decode_capture(sources[-1]).frames.select(names).to_pylist()
    assert pa.concat_tables(found).select(names).to_pylist() == expected
    assert len(expected) > 10


@pytest.mark.parametrize("share_bytes", [1, 100_000, 1 << 30])
def test_a_replay_with_bounded_memory_gives_the_rows_of_the_local_engine(
    tmp_path: Path, share_bytes: int
) -> None:
    sources = [CAPTURES / "k2_newbroker_oldcontroller.pcap", CAPTURES / "power_cut.pcap"]
    assert_bounded(sources, Options(), tmp_path, share_bytes)


@pytest.mark.parametrize("share_bytes", [1, 1 << 30])
def test_a_replay_with_bounded_memory_of_a_part_gives_the_rows_of_the_local_engine(
    tmp_path: Path, share_bytes: int
) -> None:
    source = CAPTURES / "power_cut.pcap"
    with open_capture(source) as capture:
        times = capture.records().time_ns
    nothing = tmp_path / "nothing.pcap"
    nothing.write_bytes(source.read_bytes()[:24])
    part = Window(int(times[len(times) // 3]), int(times[len(times) // 2]))
    for number, options in enumerate((Options(window=part), Options(window=Window(None, int(times.min()))))):
        (tmp_path / str(number)).mkdir()
        assert_bounded([source, nothing], options, tmp_path / str(number), share_bytes)


def assert_bounded(sources: list[Path], options: Options, folder: Path, share_bytes: int) -> None:
    """Both engines write the same."""
    out = folder / "bounded"
    results = list(
        bounded_results(sources, out, options, lambda *_: None, segment_bytes=40_000, share_bytes=share_bytes)
    )
    told(sources, results, out, LOCAL.value, options)
    run.replay(sources, folder / "whole", LOCAL, options)
    for name in ORDERS:
        left, right = (pq.read_table(path / name) for path in (out, folder / "whole"))
        assert left.to_pylist() == right.to_pylist(), name
    left, right = ((path / SUMMARY_NAME).read_bytes() for path in (out, folder / "whole"))
    assert left == right
