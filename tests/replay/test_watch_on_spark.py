"""A watch that Spark's structured streaming decodes tells what the one in this process tells."""

from __future__ import annotations

import random
from pathlib import Path

from replispec.replay.engines.cluster import Cluster
from replispec.replay.watch.spark_watch import streaming
from replispec.replay.watch.watcher import Bounds, Round
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
            with streaming(watched.checkpoint, watched.out, cluster, judge) as decode:
                assert watcher.look()
                decode()
                decode()
            assert decoded[-1] == len(watcher.ledger.segments)
        alerts += [alert.line for each in judged for alert in each.alerts]
    assert [alert["messages"] for alert in alerts] == [2]
    watched.end()
    assert watched.shown() == alerts
    watched.assert_replayed(sources)
