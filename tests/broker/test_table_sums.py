"""Tables of a broker are what was written, or are refused by name with the way out."""

from __future__ import annotations

import pytest

from replispec.broker.rocketmq.core.offsets import ConsumerOffsets
from replispec.broker.rocketmq.core.table_file import sealed, unsealed
from replispec.broker.rocketmq.core.topics import Topics
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.sim import Disk, Rng, SimulatedFiles
from replispec.runtime.storage import StorageFailed
from replispec.runtime.world import Outbox, Writes
from replispec.wire.rocketmq.broker import DataVersion, TopicConfigTable
from replispec.wire.rocketmq.client import ConsumerOffsetTable, QueueOffsets
from replispec.wire.rocketmq.constants import CONSUMER_OFFSETS_FILE, TOPICS_FILE

PLAIN = ConsumerOffsetTable(DataVersion(3, 0, 0), {}, {"T@g": QueueOffsets({0: 17, 1: 4})}).encode()


def files_with(name: str, data: bytes) -> SimulatedFiles:
    files = SimulatedFiles(Disk(Rng(1)))
    files.replace(name, data)
    return files


def positions(files: SimulatedFiles) -> int | None:
    outbox = Outbox()
    return ConsumerOffsets(outbox, Writes(outbox), files, 5_000).get("g", "T", 0)


def test_a_table_with_and_one_without_a_checksum_are_read() -> None:
    for data in (PLAIN, sealed(PLAIN)):
        assert positions(files_with(CONSUMER_OFFSETS_FILE, data)) == 17


def test_other_software_reads_a_table_with_its_checksum() -> None:
    found, plain = ConsumerOffsetTable.decode(sealed(PLAIN)), ConsumerOffsetTable.decode(PLAIN)
    assert (found.data_version, found.offset_table) == (plain.data_version, plain.offset_table)


def test_a_turned_bit_changes_nothing_without_a_word() -> None:
    data = sealed(PLAIN)
    refused = 0
    for bit in range(8 * len(data)):
        turned = bytearray(data)
        turned[bit // 8] ^= 1 << bit % 8
        try:
            assert b'"offsetTable":{"T@g":{"0":17,"1":4}}' in unsealed(bytes(turned))
        except RemoteProtocolError:
            refused += 1
    assert refused >= 8 * len(PLAIN) - 8


@pytest.mark.parametrize("suffix", ["", ".changed-05"])
def test_damage_is_refused_by_name_with_the_way_out(suffix: str) -> None:
    damaged = sealed(PLAIN).replace(b"17", b"16")
    with pytest.raises(
        StorageFailed, match=f"{CONSUMER_OFFSETS_FILE}: its checksum .*`replispec admin repair`"
    ):
        positions(files_with(CONSUMER_OFFSETS_FILE + suffix, damaged))
    table = TopicConfigTable(DataVersion(3, 0, 0), None, {}, None, None).encode()
    damaged = sealed(table).replace(b'"counter":3', b'"counter":4')
    with pytest.raises(StorageFailed, match=TOPICS_FILE):
        Topics(
            files_with(TOPICS_FILE + suffix, damaged), Writes(Outbox()), template_queues=4, auto_create=True
        )
