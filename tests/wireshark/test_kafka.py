"""Kafka's commands as Wireshark's own dissector reads them: a judge that knows nothing of our specification.

It knows Apache Kafka's bytes; the replication design V3 was never dissected by anybody.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from replispec.runtime.primitives.commands import form_of
from replispec.wire.kafka import apache
from replispec.wire.kafka.codes import ApiKey, ErrorCode
from replispec.wire.kafka.commands import REQUESTS, RESPONSES
from replispec.wire.kafka.requests import ApacheRequestFrame, ApacheResponseFrame
from tests.replay.pcap_writer import Conversation, pcap
from tests.wireshark.tshark_run import run_tshark

# Kafka's port, by which tshark knows the protocol.
PORT = 9092
EXCHANGES = 40
# Wireshark's names of what our attributes hold.
FILTERS = {
    "api_key": "kafka.api_key",
    "api_version": "kafka.api_version",
    "correlation_id": "kafka.correlation_id",
    "controller_id": "kafka.node_id",
    "controller_epoch": "kafka.controller_epoch",
    "topic_name": "kafka.topic_name",
    "partition_index": "kafka.partition_id",
    "leader": "kafka.leader_id",
    "leader_epoch": "kafka.leader_epoch",
    "isr": "kafka.isr_id",
    "zk_version": "kafka.zk_version",
    "replicas": "kafka.replica_id",
    "is_new": "kafka.is_new_replica",
    "broker_id": "kafka.node_id",
    "host_name": "kafka.host",
    "port": "kafka.port",
    "delete_partitions": "kafka.delete_partitions",
    "error": "kafka.error",
}
Seen = dict[str, list[str]]


def values(message: Any) -> Iterator[tuple[str, str]]:
    """(attribute, value as tshark writes it) of a message and its elements, in the order of the bytes."""
    for name in message.__dataclass_fields__:
        value = getattr(message, name)
        for one in value if isinstance(value, list) else [value]:
            if hasattr(one, "__dataclass_fields__"):
                yield from values(one)
            elif one is not None and name in FILTERS:
                yield name, str(int(one)) if isinstance(one, bool | int) else one


def expected(*messages: Any) -> Seen:
    """Filter -> values in order, without what is empty."""
    seen: Seen = {}
    for message in messages:
        for name, value in values(message):
            seen.setdefault(FILTERS[name], []).append(value)
    return seen


class Exchanges:
    """Random requests with their answers, from a seed."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)

    def number(self) -> int:
        return self._rng.choice([-1, 0, 1, self._rng.randint(-(1 << 31), (1 << 31) - 1)])

    def numbers(self) -> list[int]:
        return [self.number() for _ in range(self._rng.randint(0, 3))]

    def name(self) -> str:
        return "".join(self._rng.choices("abc.-_019", k=self._rng.randint(1, 9)))

    def state(self, version: int) -> apache.ApacheLeaderAndIsr:
        is_new = self._rng.random() < 0.5 if version >= 1 else None
        return apache.ApacheLeaderAndIsr(
            topic_name=self.name(),
            partition_index=self.number(),
            controller_epoch=self.number(),
            leader=self.number(),
            leader_epoch=self.number(),
            isr=self.numbers(),
            zk_version=self.number(),
            replicas=self.numbers(),
            is_new=is_new,
        )

    def request(self, code: ApiKey, version: int) -> Any:
        some = range(self._rng.randint(0, 3))
        if code is ApiKey.STOP_REPLICA:
            partitions = [apache.ApachePartition(self.name(), self.number()) for _ in some]
            deletes = self._rng.random() < 0.5
            return apache.ApacheStopReplicaRequest(self.number(), self.number(), deletes, partitions)
        states = [self.state(version) for _ in some]
        leaders = [apache.ApacheLiveLeader(self.number(), self.name(), self.number()) for _ in some]
        return apache.ApacheLeaderAndIsrRequest(self.number(), self.number(), states, leaders)

    def answer(self, kind: type[Any]) -> Any:
        error = self._rng.choice(list(ErrorCode))
        errors = [
            apache.ApachePartitionError(self.name(), self.number(), self._rng.choice(list(ErrorCode)))
            for _ in range(self._rng.randint(0, 3))
        ]
        return kind(error, errors)

    def code_and_version(self) -> tuple[ApiKey, int]:
        return self._rng.choice(
            [(ApiKey.LEADER_AND_ISR, 0), (ApiKey.LEADER_AND_ISR, 1), (ApiKey.STOP_REPLICA, 0)]
        )


@pytest.fixture(scope="module")
def dissected(tshark_home: Path, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Seen, Seen]]:
    """For each frame what was written, and what tshark reads."""
    exchanges = Exchanges(seed=4)
    talk = Conversation(("10.0.0.1", 40000), ("10.0.0.2", PORT)).open()
    written: list[Seen] = []
    for number in range(EXCHANGES):
        code, version = exchanges.code_and_version()
        request = exchanges.request(code, version)
        assert form_of(REQUESTS, code, version, "apache") is type(request)
        kind = form_of(RESPONSES, code, version, "apache")
        assert kind is not None
        answer = exchanges.answer(kind)
        asked = ApacheRequestFrame(code, version, number, None, request.encode(version=version))
        told = ApacheResponseFrame(number, answer.encode(version=version))
        talk.send(asked.encode(), from_client=True).send(told.encode(), from_client=False)
        # tshark repeats in an answer which request it belongs to.
        written += [
            expected(asked, request),
            {**expected(told, answer), FILTERS["api_key"]: [str(int(code))]},
        ]
    capture = tmp_path_factory.mktemp("kafka") / "kafka.pcap"
    capture.write_bytes(pcap(talk.packets))
    columns = [argument for name in FILTERS.values() for argument in ("-e", name)]
    output = run_tshark(
        capture,
        tshark_home,
        "-Y",
        "kafka",
        "-T",
        "fields",
        "-E",
        "separator=/t",
        "-E",
        "aggregator=,",
        *columns,
    )
    return list(zip(written, map(_read, output.splitlines()), strict=True))


def _read(line: str) -> Seen:
    cells = zip(FILTERS.values(), line.split("\t"), strict=True)
    return {name: cell.split(",") for name, cell in cells if cell}


def test_wireshark_reads_what_was_written_frame_by_frame(dissected: list[tuple[Seen, Seen]]) -> None:
    assert len(dissected) == 2 * EXCHANGES
    for written, read in dissected:
        assert {name: [_plain(value) for value in found] for name, found in read.items()} == written


def _plain(value: str) -> str:
    """A truth value as a number."""
    return {"True": "1", "False": "0"}.get(value, value)


def test_every_filter_was_compared(dissected: list[tuple[Seen, Seen]]) -> None:
    assert {name for written, _ in dissected for name in written} == set(FILTERS.values())
