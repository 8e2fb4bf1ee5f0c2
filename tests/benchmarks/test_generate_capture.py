"""The generated capture is what its truth says: measured rates are rates of correct work."""

import hashlib
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.rocketmq.generate_capture import generate, line
from replispec.replay.engines.decoding import decode_capture

SIZE_MB = 0.2
SEED_WITH_A_MID_STREAM_START = 2


def directions(frames: pa.Table) -> dict[str, dict[str, object]]:
    """The decoded frames in the form of the truth."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in frames.to_pylist():
        found[f"{row['source']}>{row['destination']}"].append(row)
    return {
        name: {
            "frames": len(rows),
            "bytes": sum(row["size"] for row in rows),
            "sha256": hashlib.sha256(
                b"".join(line(row["sequence"], row["size"], _key(row)) for row in rows)
            ).hexdigest(),
            "from_start": all(row["from_start"] for row in rows),
        }
        for name, rows in found.items()
    }


def _key(row: dict[str, Any]) -> int | None:
    keys = {"HaTransferHeader": "offset", "HaReport": "max_offset"}
    value: int | None = (
        row["opaque"] if row["protocol"] == "remoting" else row.get(keys.get(row["message"], ""))
    )
    return value


def test_a_generated_capture_decodes_to_exactly_its_truth(tmp_path: Path) -> None:
    capture = tmp_path / "mix.pcap"
    truth: Any = generate(capture, SIZE_MB, SEED_WITH_A_MID_STREAM_START)
    decoded = decode_capture(capture)
    assert directions(decoded.frames) == truth["directions"]
    assert not all(direction["from_start"] for direction in truth["directions"].values())
    assert decoded.holes.num_rows == 0
    assert decoded.frames.num_rows == sum(truth["frames"].values()) > 100
    assert truth["bytes"] == capture.stat().st_size


def test_the_same_seed_gives_the_same_bytes_and_another_one_does_not(tmp_path: Path) -> None:
    contents = []
    for seed in (1, 1, 2):
        generate(tmp_path / "mix.pcap", SIZE_MB, seed)
        contents.append((tmp_path / "mix.pcap").read_bytes())
    assert contents[0] == contents[1] != contents[2]
