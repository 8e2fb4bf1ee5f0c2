"""The files that copy what the log has of mappings: written later and together, so that no message waits for
them behind each change."""

from __future__ import annotations

from replispec.broker.rocketmq.core.table_file import unsealed
from replispec.runtime.sim import SimulatedStorage
from replispec.wire.rocketmq.broker import LogicalQueueMappingTable, TopicConfigTable
from replispec.wire.rocketmq.constants import LOGICAL_MAPPING_FILE, MAPPING_COPY_MS, TOPICS_FILE
from tests.broker.simulated_set import OK
from tests.queues.logical_sets import LogicalSet


class Copied(LogicalSet):
    """A broker with the topic L, of which two queues are mapped and the copies are written."""

    def __init__(self) -> None:
        super().__init__()
        self.address = self.alone()
        self.mapped(self.address)
        self.world.run_for(2 * MAPPING_COPY_MS)

    def grow(self, *indexes: int) -> None:
        """One more message queue for each."""
        for index in indexes:
            assert self.create(self.address, index, "Normal")[0] == (OK, "")

    def files(self) -> tuple[bytes, bytes]:
        """The copy of the mappings, and the topics."""
        files = SimulatedStorage(self.world.processes["broker1"].disk).files("store")
        return files.read(LOGICAL_MAPPING_FILE) or b"", files.read(TOPICS_FILE) or b""

    def counts(self) -> tuple[int, int, int | None]:
        """How many segments the copies have, as of which version, and how many message queues the topic."""
        mappings, topics = map(unsealed, self.files())
        table = LogicalQueueMappingTable.decode(mappings)
        version = table.data_version and table.data_version.counter
        held = (table.mappings or {})["L"].segments or ()
        topic = (TopicConfigTable.decode(topics).topic_config_table or {})["L"]
        return len(held), version or 0, topic.write_queue_nums


def test_changes_are_copied_later_and_together() -> None:
    broker = Copied()
    before = broker.files()
    broker.grow(2, 3)
    assert broker.files() == before
    broker.world.run_for(MAPPING_COPY_MS)
    held, _, queues = broker.counts()
    assert (held, queues) == (4, 4)


def test_who_stops_leaves_the_copies_as_they_are_to_be() -> None:
    broker = Copied()
    broker.grow(2)
    broker.world.stop("broker1")
    held, _, queues = broker.counts()
    assert (held, queues) == (3, 3)


def test_versions_grow_though_the_copy_is_of_before() -> None:
    """A name server takes for late what comes with a smaller one."""
    broker = Copied()
    broker.grow(2, 3, 4, 5)
    broker.world.kill("broker1", power=True)
    broker.start("broker1")
    broker.until(lambda: broker.broker(1).serves)
    broker.until(lambda: bool(broker.told(broker.address)))
    broker.grow(6)
    broker.world.run_for(2 * MAPPING_COPY_MS)
    held, version, queues = broker.counts()
    assert (held, queues) == (7, 7)
    changes = 7  # of which two mapped
    assert version >= changes
