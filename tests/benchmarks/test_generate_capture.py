"""The generated capture is what its truth says: measured rates are rates of correct work."""

import hashlib
from collections import defaultdict
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest

from benchmarks.rocketmq.generate_capture import Kind, Wanted, generate
from benchmarks.rocketmq.generated_links import line
from benchmarks.truth import disagreements
from replispec.replay.engines.decoding import decode_capture
from replispec.replay.engines.results import SUMMARY_NAME, Options
from replispec.replay.engines.run import EngineName, replay

SIZE_MB = 0.3
SEED_WITH_A_MID_STREAM_START = 8
SETS, CONNECTIONS = 3, 60
KINDS = list(Kind)


def wanted(kind: Kind, seed: int, lost: int) -> Wanted:
    return Wanted(SIZE_MB, seed, kind, lost, SETS, CONNECTIONS)


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
    truth: Any = generate(capture, Wanted(SIZE_MB, SEED_WITH_A_MID_STREAM_START))
    decoded = decode_capture(capture)
    found = directions(decoded.frames)
    assert {name: found[name] for name in truth["directions"]} == truth["directions"]
    assert not all(direction["from_start"] for direction in truth["directions"].values())
    assert decoded.holes.num_rows == 0
    assert decoded.frames.num_rows == sum(truth["frames"].values()) > 100
    assert truth["bytes"] == capture.stat().st_size


def test_the_same_seed_gives_the_same_bytes_and_another_one_does_not(tmp_path: Path) -> None:
    contents = []
    for seed in (1, 1, 2):
        generate(tmp_path / "mix.pcap", Wanted(SIZE_MB, seed))
        contents.append((tmp_path / "mix.pcap").read_bytes())
    assert contents[0] == contents[1] != contents[2]


def judged(path: Path, how: Wanted) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the replay says of a generated capture, and the truth."""
    truth: dict[str, Any] = generate(path / "made.pcap", how)
    replay([path / "made.pcap"], path / "out", EngineName.LOCAL, Options())
    summary: dict[str, Any] = orjson.loads((path / "out" / SUMMARY_NAME).read_bytes())
    return summary, truth


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.value)
@pytest.mark.parametrize(("seed", "lost"), [(1, 0), (2, 1), (3, 17)])
def test_every_verdict_of_a_generated_capture_is_the_one_its_generator_knows(
    kind: Kind, seed: int, lost: int, tmp_path: Path
) -> None:
    summary, truth = judged(tmp_path, wanted(kind, seed, lost))
    assert disagreements(summary, truth) == []
    assert sum(loss["acknowledged"] for loss in summary["losses"]) == lost
    violated = {row["invariant"] for row in summary["findings"] if row["verdict"] == "violated"}
    assert violated == ({"acknowledged-send-survives"} if lost else set())


def test_a_wrong_verdict_a_wrong_count_and_a_wrong_loss_are_told(tmp_path: Path) -> None:
    summary, truth = judged(tmp_path, wanted(Kind.MIX, 1, 2))
    rows = truth["rows"]["Controllers/broker-0"]
    rows["offset-chain"]["verdict"] = "violated"
    rows["pairing of ours"] = {"verdict": "ok", "evaluated": 1}
    truth["rows"]["*"]["pairing"]["evaluated"] += 1
    truth["losses"][0]["acknowledged"] += 1
    truth["frames"]["ha"] += 1
    told = disagreements(summary, truth)
    assert len(told) == 5
    for word in ("frames", "losses", "offset-chain", "pairing of ours", "pairing of *"):
        assert any(word in line for line in told)


def test_a_violation_of_a_rule_that_the_generator_does_not_know_is_told(tmp_path: Path) -> None:
    summary, truth = judged(tmp_path, wanted(Kind.FLOW, 1, 2))
    del truth["rows"]["Controllers/broker-0"]["acknowledged-send-survives"]
    del truth["rows"]["Controllers/broker-0"]["same-bytes"]
    assert disagreements(summary, truth) == ["acknowledged-send-survives of Controllers/broker-0: violated"]
