"""Captures of several hosts, merged, are judged on Spark as in this process.

With REPLISPEC_SPREAD=all, as in `make test-full`.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from replispec.replay.engines import spark_parts
from replispec.replay.engines.results import LOST_NAME, REPORT_NAME, Options
from replispec.replay.engines.run import EngineName, replay
from replispec.replay.hosts.merging import merge
from tests.replay import mess
from tests.replay.hosts import Places, at_hosts
from tests.replay.test_mess import header_and_packets
from tests.replay.test_spark_cluster import rows
from tests.replay.test_spread_on_spark import FRAMES_OF_A_PART, SPLIT_BYTES

pytestmark = pytest.mark.skipif(
    os.environ.get("REPLISPEC_SPREAD") != "all", reason="replays on Spark: make test-full"
)
# Replicas that lost messages, and one host that others see under another address.
NAMES = ("failover_lost", "hung_master")
PLACES = Places(lost=0.02, hides="others")


@pytest.mark.parametrize("name", NAMES)
def test_captures_of_several_hosts_come_to_the_same(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header, packets = header_and_packets(name)
    paths = []
    for number, own in enumerate(at_hosts(packets, random.Random(name), PLACES)):
        paths.append(tmp_path / f"host{number}.pcap")
        paths[-1].write_bytes(mess.written(header, own))
    story = tmp_path / "story.pcapng"
    made = merge(paths, story)
    for each in ("FRAMES_MINIMUM", "FRAMES_OF_ONE"):
        monkeypatch.setattr(spark_parts, each, FRAMES_OF_A_PART)
    options = Options(split_bytes=SPLIT_BYTES, events_together=0)
    spark, local = (tmp_path / engine.value for engine in EngineName)
    for engine in EngineName:
        replay([story], tmp_path / engine.value, engine, options, merged=made)
    assert rows(spark) == rows(local)
    assert (spark / LOST_NAME).read_bytes() == (local / LOST_NAME).read_bytes()
    reports = [(each / REPORT_NAME).read_text("utf-8").replace("spark", "local") for each in (spark, local)]
    assert reports[0] == reports[1]
