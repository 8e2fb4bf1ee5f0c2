"""The Spark engine's frames are the local engine's frames."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pytest

from replispec.replay.capture.records import CaptureError
from replispec.replay.engines.cluster import Cluster
from replispec.replay.engines.decoding import decode_capture
from replispec.replay.engines.spark_frames import FLOWS_A_BUCKET, buckets_of, decode_on_spark
from replispec.replay.engines.spark_session import spark_session
from replispec.replay.frames.tables import FRAMES_ORDER, HOLES_ORDER, STREAMS_ORDER
from tests.replay.pcap_writer import pcap
from tests.replay.random_traffic import Harm, command, random_capture
from tests.replay.test_turns import FIRST, SECOND, talk

CAPTURES = Path(__file__).parents[2] / "spark_replay" / "captures"


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Real traffic, a harmed and cut capture, a compressed one, and ports that are used again."""
    folder = tmp_path_factory.mktemp("captures")
    harm = Harm(lost=0.03, repeated=0.05, reordered=0.1, cut=0.05, headless=0.3)
    harmed = folder / "harmed.pcap"
    data = bytearray(pcap(random_capture(11, harm, talks=8)))
    data[24 + 16 + 14 + 6 + 1] = 16  # the first packet says that it is a later fragment
    harmed.write_bytes(data[:-3])
    packed = folder / "packed.pcap.gz"
    packed.write_bytes(gzip.compress((CAPTURES / "t_binary_header.pcap").read_bytes(), mtime=0))
    reused = folder / "reused.pcap"
    one, two = talk(FIRST, command(1) * 400), talk(SECOND, command(2) * 400)
    reused.write_bytes(pcap([*one, *two[:99], *one, *two[99:], *one[2:]]))
    return [CAPTURES / "g_mqadmin.pcap", harmed, packed, reused]


def test_both_engines_give_the_same_rows(captures: list[Path], tmp_path: Path) -> None:
    local = [decode_capture(path) for path in captures]
    assert local[-1].streams.num_rows == 4
    orders = {"frames": FRAMES_ORDER, "holes": HOLES_ORDER, "streams": STREAMS_ORDER}
    decoded = decode_on_spark(
        spark_session(Cluster("local[2]")), captures, tmp_path / "frames", split_bytes=100_000
    )
    for name, order in orders.items():
        ascending = [(column, "ascending") for column in order]
        table = getattr(decoded, name)
        found = (table if isinstance(table, pa.Table) else table.toArrow()).sort_by(ascending)
        expected = pa.concat_tables([getattr(part, name) for part in local]).sort_by(ascending)
        assert found.schema == expected.schema
        assert found.to_pylist() == expected.to_pylist()
        if name == "frames":
            assert sum(decoded.counts.values()) == expected.num_rows
    assert [len(own) for own in decoded.warnings] == [0, 2, 0, 0]
    assert decoded.warnings == tuple(part.warnings for part in local)


@pytest.mark.parametrize("cores", [1, 2, 64])
def test_who_stitches_holds_a_bounded_number_of_flows(cores: int) -> None:
    """However few cores there are; and where there are many, each has some."""
    for crossing in (0, 1, FLOWS_A_BUCKET, FLOWS_A_BUCKET + 1, 40_000):
        buckets = buckets_of(cores, 4, crossing)
        assert buckets >= cores
        assert crossing / buckets <= FLOWS_A_BUCKET


def test_what_is_no_capture_is_refused_before_any_work(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("no capture")
    with pytest.raises(CaptureError, match=r"notes\.txt"):
        decode_on_spark(spark_session(Cluster("local[2]")), [path], tmp_path / "frames")
    assert not (tmp_path / "frames").exists()
