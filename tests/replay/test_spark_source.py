"""Captures are a source that Spark reads by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from replispec.replay.capture.files import open_capture
from replispec.replay.engines.cluster import Cluster
from replispec.replay.engines.decoding import decode_capture
from replispec.replay.engines.source_tables import schemas
from replispec.replay.engines.spark_session import spark_session
from replispec.replay.engines.spark_source import (
    FORMAT,
    PcapDataSource,
    SourceOptionError,
    _Request,
    read_captures,
    register,
)
from replispec.replay.tcp.packets import read_packets

CAPTURES = Path(__file__).parents[2] / "spark_replay" / "captures"
CAPTURE = CAPTURES / "k2_newbroker_oldcontroller.pcap"


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    session = spark_session(Cluster("local[2]"))
    register(session)
    return session


def read(spark: SparkSession, path: Path, **options: object) -> DataFrame:
    return (
        spark.read.format(FORMAT)
        .options(**{name: str(value) for name, value in options.items()})
        .load(str(path))
    )


def test_frames_and_events_are_those_of_a_replay(spark: SparkSession) -> None:
    expected = decode_capture(CAPTURE).frames.select(["connection", "sequence", "code"])
    found = read(spark, CAPTURE, what="frames", columns="connection,sequence,code").toArrow()
    assert found.to_pylist() == expected.to_pylist()
    latency = read(spark, CAPTURE, what="events.latency")
    assert latency.columns == schemas()["events.latency"].names
    assert latency.count() > 0


def test_packets_are_read_split_by_split_and_filtered_by_spark(spark: SparkSession) -> None:
    packets = read(spark, CAPTURES / "k?_*.pcap", what="packets", splitBytes=4_000)
    with open_capture(CAPTURE) as capture:
        truth = read_packets(capture.data, capture.records())
    middle = int(truth.time_ns[len(truth) // 2])
    chosen = packets.where(f"capture = '{CAPTURE.name}' and time_ns >= {middle}")
    assert packets.rdd.getNumPartitions() > 2
    assert chosen.count() == int((truth.time_ns >= middle).sum())
    assert packets.where(f"capture = '{CAPTURE.name}'").count() == len(truth)


def scanned(table: DataFrame) -> tuple[int, int, list[dict[str, Any]]]:
    """Parts that were read, rows that came out of them, and the rows of the answer."""
    rows = [row.asDict() for row in table.collect()]
    found: list[Any] = [table._jdf.queryExecution().executedPlan()]
    parts = read = 0
    while found:
        plan = found.pop()
        if plan.getClass().getSimpleName() == "AdaptiveSparkPlanExec":
            found.append(plan.executedPlan())
        elif plan.getClass().getSimpleName() == "BatchScanExec":
            parts += plan.inputRDD().getNumPartitions()
            read += plan.metrics().apply("numOutputRows").value()
        else:
            found += [plan.children().apply(at) for at in range(plan.children().size())]
    return parts, read, rows


def test_captures_that_are_not_wanted_are_not_read(spark: SparkSession) -> None:
    packets = read_captures(spark, CAPTURES / "k?_*.pcap", "packets", ["sequence"], splitBytes=4_000)
    parts, read, rows = scanned(packets.where(f"capture = '{CAPTURE.name}'"))
    with open_capture(CAPTURE) as capture:
        assert parts == len(capture.cuts(4_000)) > 2
        assert read == len(rows) == len(read_packets(capture.data, capture.records()))
    every = scanned(read_captures(spark, CAPTURES / "k?_*.pcap", "packets", ["sequence"], splitBytes=4_000))
    assert every[0] > parts
    assert every[1] > read


def test_splits_of_another_time_are_not_read(spark: SparkSession) -> None:
    with open_capture(CAPTURE) as capture:
        truth = read_packets(capture.data, capture.records())
        splits = len(capture.cuts(4_000))
    times = sorted(truth.time_ns.tolist())
    low, high = times[len(times) // 2], times[len(times) * 3 // 4]
    packets = read_captures(spark, CAPTURE, "packets", ["time_ns"], splitBytes=4_000)
    parts, read, rows = scanned(packets.where(f"time_ns >= {low} and time_ns < {high}"))
    assert 0 < parts <= splits // 2
    assert read == len(rows) == sum(low <= time < high for time in times)
    nothing = read_captures(spark, CAPTURE, "packets", splitBytes=4_000).where("time_ns < 5")
    assert scanned(nothing) == (1, 0, [])


def test_frames_of_a_large_capture_are_read_by_several(spark: SparkSession) -> None:
    path = CAPTURES / "failover_lost.pcap"
    columns = ["connection", "sequence", "code"]
    truth = decode_capture(path).frames.select(columns).to_pylist()
    whole = scanned(read_captures(spark, path, columns=columns, splitBytes=400_000))
    assert whole[:2] == (4, len(truth))
    assert sorted(map(str, ({name: row[name] for name in columns} for row in whole[2]))) == sorted(
        map(str, truth)
    )
    some = scanned(read_captures(spark, path, columns=columns).where("code in (105, 1005)"))
    assert some[:2] == (1, sum(row["code"] in (105, 1005) for row in truth))


def test_events_that_are_not_wanted_stay_in_the_worker(spark: SparkSession) -> None:
    events = read_captures(spark, CAPTURE, "events.latency").where("time_ns is null")
    assert scanned(events)[1:] == (0, [])


def test_a_table_asked_with_several_filters_gives_the_right_rows(spark: SparkSession) -> None:
    """Spark keeps the last filters of a table for all its readers: they must not narrow what others read."""
    truth = decode_capture(CAPTURE).frames["time_ns"].to_pylist()
    middle = sorted(truth)[len(truth) // 2]
    before, after = (f"time_ns {sign} {middle}" for sign in ("<", ">="))
    table = read_captures(spark, CAPTURE, columns=["time_ns"])
    assert table.where(before).union(table.where(after)).count() == len(truth)
    later = read_captures(spark, CAPTURE, columns=["time_ns"])
    assert later.where(before).count() == sum(time < middle for time in truth)
    assert later.count() == len(truth)
    assert later.where(after).count() == sum(time >= middle for time in truth)
    plain = read(spark, CAPTURE, columns="time_ns")
    assert plain.where(before).count() == sum(time < middle for time in truth)
    assert plain.count() == len(truth)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"what": "bytes"}, "is none of packets, frames"),
        ({"columns": "code,mine"}, "no column 'mine'"),
        ({"columns": "code,code"}, "names one of them twice"),
        ({"splitBytes": "0"}, "no positive number"),
        ({"splitBytes": "²"}, "no positive number"),
        ({"speed": "1"}, "no option 'speed'"),
    ],
)
def test_an_option_that_cannot_be_meant_is_refused(options: dict[str, str], said: str) -> None:
    with pytest.raises(SourceOptionError, match=said):
        PcapDataSource({"path": str(CAPTURE), **options}).schema()


def test_a_path_without_a_file_is_refused() -> None:
    with pytest.raises(SourceOptionError, match="no glob that fits one"):
        _Request({"path": "nowhere/*.pcap"}).paths()


def test_a_name_that_is_no_text_is_one_line(tmp_path: Path) -> None:
    odd = tmp_path / "b\udcff.pcap"
    odd.write_bytes(b"")
    with pytest.raises(SourceOptionError, match=r"b.udcff.pcap': this name is no text"):
        _Request({"path": str(tmp_path / "*")}).paths()


def test_columns_may_be_one_text(spark: SparkSession) -> None:
    table = read_captures(spark, CAPTURES / "a_first_start.pcap", "packets", "time_ns, flags")
    assert table.columns == ["time_ns", "flags", "capture"]


def test_what_is_offered_has_a_schema_of_its_own() -> None:
    assert all(isinstance(schema, pa.Schema) and schema.names for schema in schemas().values())


def test_every_session_of_a_process_reads_captures(spark: SparkSession) -> None:
    spark.createDataFrame([], "active string")  # Spark looks for names in the active session: this one, now
    sessions = (spark, spark.newSession(), spark, spark.newSession())
    assert len({read_captures(each, CAPTURE, "packets").count() for each in sessions}) == 1


def test_a_folder_is_no_capture(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    for path in (tmp_path, tmp_path / "*", tmp_path / "inner" / "*"):
        with pytest.raises(SourceOptionError, match="is no file, and no glob that fits one"):
            _Request({"path": str(path)}).paths()
    (tmp_path / "a.pcap").write_bytes(CAPTURE.read_bytes())
    assert _Request({"path": str(tmp_path / "*")}).paths() == [str(tmp_path / "a.pcap")]
