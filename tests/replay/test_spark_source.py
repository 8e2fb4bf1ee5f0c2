"""Captures are a source that Spark reads by itself."""

from __future__ import annotations

from pathlib import Path

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


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"what": "bytes"}, "is none of packets, frames"),
        ({"columns": "code,mine"}, "no column 'mine'"),
        ({"splitBytes": "0"}, "no positive number"),
        ({"speed": "1"}, "no option 'speed'"),
    ],
)
def test_an_option_that_cannot_be_meant_is_refused(options: dict[str, str], said: str) -> None:
    with pytest.raises(SourceOptionError, match=said):
        PcapDataSource({"path": str(CAPTURE), **options}).schema()


def test_a_path_without_a_file_is_refused() -> None:
    with pytest.raises(SourceOptionError, match="no glob that fits one"):
        _Request({"path": "nowhere/*.pcap"}).paths()


def test_what_is_offered_has_a_schema_of_its_own() -> None:
    assert all(isinstance(schema, pa.Schema) and schema.names for schema in schemas().values())
