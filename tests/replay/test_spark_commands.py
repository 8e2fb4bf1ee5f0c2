"""What Spark is told is as long for any input: what grows lies in files, of which a worker reads its part."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.serializers import CloudPickleSerializer

from replispec.replay.engines.results import Options
from replispec.replay.engines.run import EngineName, replay
from tests.replay.pcap_writer import pcap
from tests.replay.random_traffic import Harm, random_capture

# Counts and paths are written with more digits or fewer.
DIGITS_BYTES = 40
HARM = Harm(lost=0.03, repeated=0.05, reordered=0.1, cut=0.05, headless=0.3)


def test_what_every_worker_is_told_does_not_grow_with_the_captures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[int] = []
    dumps: Callable[[CloudPickleSerializer, Any], bytes] = CloudPickleSerializer.dumps

    def noted(self: CloudPickleSerializer, command: Any) -> bytes:
        found = dumps(self, command)
        told.append(len(found))
        return found

    monkeypatch.setattr(CloudPickleSerializer, "dumps", noted)
    lengths = []
    for name, talks, split_bytes, captures in (("one", 1, 1 << 20, 1), ("two", 4, 10_000, 2)):
        files = [tmp_path / f"{name}-{number}.pcap" for number in range(captures)]
        for number, file in enumerate(files):
            file.write_bytes(pcap(random_capture(number, HARM, talks=talks)))
        replay(files, tmp_path / name, EngineName.SPARK, Options(split_bytes=split_bytes))
        lengths.append(list(told))
        told.clear()
    few, many = lengths
    assert len(few) == len(many) >= 5
    assert max(abs(one - other) for one, other in zip(few, many, strict=True)) < DIGITS_BYTES, lengths
