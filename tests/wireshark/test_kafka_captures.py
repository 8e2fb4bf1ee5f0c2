"""Wireshark's own dissector counts the same requests and answers in shipped captures as the replay."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from replispec.replay.frames.kafka.readers import ANSWERS, REQUESTS
from tests.replay.partitions import CAPTURES, decoded
from tests.wireshark.tshark_run import run_tshark

SOME = ("kafka_controller", "kafka_recreated", "kafka_truncation_hw")
FIELDS = ("kafka.api_key", "kafka.correlation_id")


def _listeners(name: str) -> list[str]:
    """The ports on which brokers listen."""
    streams = decoded(name).streams.to_pylist()
    return sorted(
        {each["destination"].rpartition(":")[2] for each in streams if each["protocol"] == REQUESTS}
    )


@pytest.mark.parametrize("name", SOME)
def test_tshark_finds_the_same_frames(name: str, tmp_path: Path) -> None:
    arguments = [word for port in _listeners(name) for word in ("-d", f"tcp.port=={port},kafka")]
    shown = [word for field in FIELDS for word in ("-e", field)]
    said = run_tshark(CAPTURES[name], tmp_path, *arguments, "-Y", "kafka", "-T", "fields", *shown)
    keys: Counter[str] = Counter()
    numbers: Counter[str] = Counter()
    for line in said.splitlines():
        asked, numbered = (each.split(",") if each else [] for each in line.split("\t"))
        keys.update(asked)
        numbers.update(numbered)
    frames = decoded(name).frames.select(["protocol", "api_key", "correlation_id"]).to_pylist()
    own = [each for each in frames if each["protocol"] in (REQUESTS, ANSWERS)]
    assert numbers == Counter(str(each["correlation_id"]) for each in own)
    # An answer repeats no key: tshark shows the one of its request with both.
    requests = Counter(str(each["api_key"]) for each in own if each["protocol"] == REQUESTS)
    assert set(keys) == set(requests)
    assert all(count <= keys[key] <= 2 * count for key, count in requests.items())
