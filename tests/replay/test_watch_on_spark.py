"""A watch that Spark's structured streaming decodes tells what the one in this process tells."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from replispec.replay.engines.cluster import LATE, Cluster, meaning
from replispec.replay.engines.results import Options
from replispec.replay.engines.run import EngineName, replay
from replispec.replay.engines.spark_session import whole
from replispec.replay.watch.spark_watch import STARTS, Stream, streaming
from replispec.replay.watch.watcher import Bounds, Round, Watcher
from tests.cli.command import command
from tests.replay.spark_cluster import children
from tests.replay.watching import CAPTURES, Watched, cut


def test_spark_goes_on_from_its_checkpoint_and_tells_what_the_local_engine_tells(tmp_path: Path) -> None:
    watched = Watched(tmp_path / "watched", Bounds(segment=60_000))
    sources = cut(CAPTURES / "hung_master.pcap", tmp_path / "sources", 2, random.Random(3))
    alerts, decoded = [], []
    for source in sources:
        (watched.folder / source.name).write_bytes(source.read_bytes())
        judged: list[Round] = []
        with watched.opened() as watcher:

            def judge(watcher: object = watcher, judged: list[Round] = judged) -> None:
                # Decoded by the stream, before anything is judged.
                segments = watched.checkpoint / "segments"
                decoded.append(len(list(segments.glob("about-*"))))
                judged.append(watcher.judge())  # type: ignore[attr-defined]

            cluster = Cluster("local[2]")
            with streaming(watched.checkpoint, watched.out, cluster, watched.bounds.stretch, judge) as decode:
                assert watcher.look()
                decode()
                decode()
            assert decoded[-1] == len(watcher.ledger.segments)
        alerts += [alert.line for each in judged for alert in each.alerts]
    assert [alert["messages"] for alert in alerts] == [2]
    watched.end()
    assert watched.shown() == alerts
    watched.assert_replayed(sources)


@pytest.mark.skipif(os.environ.get("REPLISPEC_SPREAD") != "all", reason="a stream of its own: make test-full")
def test_a_file_that_is_replaced_while_spark_decodes_is_named_and_the_other_one_is_not_read(
    tmp_path: Path,
) -> None:
    watched = Watched(tmp_path / "watched", Bounds(segment=60_000))
    first, second = cut(CAPTURES / "hung_master.pcap", tmp_path / "sources", 2, random.Random(3))
    path = watched.folder / "a.pcap"
    path.write_bytes(first.read_bytes())
    with watched.opened() as watcher:

        def judge(watcher: Watcher = watcher) -> None:
            watcher.judge()

        cluster = Cluster("local[2]")
        with streaming(watched.checkpoint, watched.out, cluster, watched.bounds.stretch, judge) as decode:
            assert watcher.look()
            path.unlink()
            # Segments are copies: what is gone is decoded all the same.
            decode()
            path.write_bytes(second.read_bytes())
            watcher.look()
            decode()
            shutil.copy(second, watched.folder / "b.pcap")
            assert watcher.look()
            decode()
    size = first.stat().st_size
    told = f"a.pcap: was replaced by another file after {size} bytes of it; that one is not read"
    (capture,) = watched.end().captures
    assert capture.unread == (f"{told} (at byte {size})",)
    whole = replay([CAPTURES / "hung_master.pcap"], tmp_path / "whole", EngineName.LOCAL, Options())
    assert capture.frames_remoting == whole.captures[0].frames_remoting


class Query:
    """A stream of Spark that fails with these words, or not at all."""

    def __init__(self, words: str) -> None:
        self.words = words

    def processAllAvailable(self) -> None:  # noqa: N802 (Spark's)
        if self.words:
            raise StreamingQueryException(self.words)


def test_a_stream_whose_python_starts_late_is_begun_again() -> None:
    late = f"[STREAM_FAILED] Query terminated with exception: {LATE}. SQLSTATE: XXKST"
    said = iter([late] * (STARTS - 1) + [""])
    Stream(lambda: cast("StreamingQuery", Query(next(said)))).run()
    assert next(said, None) is None
    with pytest.raises(StreamingQueryException, match="failed to connect"):
        Stream(lambda: cast("StreamingQuery", Query(late))).run()
    once = iter(["something else"])
    with pytest.raises(StreamingQueryException, match="something else"):
        Stream(lambda: cast("StreamingQuery", Query(next(once)))).run()
    assert (meaning(late) or "").startswith("a Python worker of Spark did not start within 10 s")


@pytest.mark.skipif(os.environ.get("REPLISPEC_SPREAD") != "all", reason="a stream of its own: make test-full")
def test_ctrl_c_ends_a_watch_on_spark_with_its_verdict(tmp_path: Path) -> None:
    folder, out = tmp_path / "folder", tmp_path / "out"
    folder.mkdir()
    shutil.copy(CAPTURES / "hung_master.pcap", folder)
    line = command("watch", folder, "--out", out, "--engine", "spark", "--every", "0.05", "--quiet")
    with subprocess.Popen(line, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ALERT ")
        process.send_signal(signal.SIGINT)
        told, said = process.communicate()
    assert (process.returncode, said) == (1, "")
    assert told.startswith("2 acknowledged messages")


def test_who_heard_ctrl_c_before_spark_started_hears_it_again_where_that_is_wanted() -> None:
    heard: list[str] = []

    def says(name: str) -> Callable[[int, object], None]:
        return lambda _number, _frame: heard.append(name)

    before = signal.signal(signal.SIGINT, says("own"))
    try:
        for own_signals in (True, False):
            signal.signal(signal.SIGINT, says("own"))
            with whole(own_signals=own_signals):
                signal.raise_signal(signal.SIGINT)
                signal.signal(signal.SIGINT, says("Spark's"))
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == ["own", "Spark's"]


def test_a_java_process_that_ends_is_one_line_of_a_watch(tmp_path: Path) -> None:
    folder, out = tmp_path / "folder", tmp_path / "out"
    folder.mkdir()
    capture = CAPTURES / "hung_master.pcap"
    shutil.copy(capture, folder)
    line = command("watch", folder, "--out", out, "--engine", "spark", "--every", "0.05", "--quiet")
    with subprocess.Popen(line, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ALERT ")
        for java in children(process.pid):
            os.kill(java, signal.SIGKILL)
        # Spark is asked again when there is something new.
        with (folder / capture.name).open("ab") as file:
            file.write(capture.read_bytes()[24:])
        _, said = process.communicate()
    assert process.returncode == 2, said
    assert said.splitlines()[-1].startswith("Error: Spark's Java process ended")
    assert "Traceback" not in said
