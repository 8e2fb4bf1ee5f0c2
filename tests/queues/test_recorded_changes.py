"""Records of mappings of logical queues: a change is as long as what changed, whatever the broker holds."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from replispec.broker.rocketmq.core.logical_mappings import LogicalMappings
from replispec.broker.rocketmq.core.topic_mapping import TopicMapping
from replispec.runtime.rocketmq.log import MessageStore
from replispec.runtime.sim import SimulatedStorage
from replispec.runtime.world import Outbox, Writes
from replispec.wire.rocketmq.broker import LogicalQueueChange, LogicalQueueMapping
from replispec.wire.rocketmq.constants import LOGICAL_MAPPING_QUEUE, MAPPING_TOPIC, QUEUE_REST_MS
from replispec.wire.rocketmq.store import LogRecord
from tests.broker.simulated_set import OK
from tests.queues.logical_sets import LogicalSet, elsewhere, own, shorts
from tests.queues.test_logical_retention import filled


class Recorded(LogicalSet):
    """A broker of which the records of mappings are looked at."""

    def __init__(self, queues: int) -> None:
        super().__init__()
        self.address = self.alone()
        self.mapped(self.address, queues)

    @property
    def store(self) -> MessageStore:
        """Its log."""
        return self.broker(1)._log.store

    def bodies(self) -> list[bytes]:
        """What is recorded of logical queues, oldest first."""
        queue = self.store.index.queues[MAPPING_TOPIC, LOGICAL_MAPPING_QUEUE]
        found = []
        for position in range(queue.first, queue.end):
            entry = queue.stored(position)
            assert entry is not None
            data = self.store.log.read(entry.offset, entry.size)
            assert data is not None
            found.append(LogRecord.decode(data).body)
        return found

    def changes(self) -> list[LogicalQueueChange | None]:
        """Of each record, of which change it is; None for one of all."""
        return [LogicalQueueMapping.decode(each).change for each in self.bodies()]

    def known(self) -> TopicMapping | None:
        """What the broker holds, as it knows it."""
        found = self.broker(1)._mappings.logical.newest("L")
        return None if found is None else found.said

    def read(self) -> TopicMapping | None:
        """The same as somebody reads it who has the log alone."""
        files = SimulatedStorage(self.world.processes["broker1"].disk).files("other")
        again = LogicalMappings(Outbox(), Writes(Outbox()), files, self.store, "broker-a")
        again.catch_up()
        found = again.newest("L")
        return None if found is None else found.said

    def record(self, body: bytes) -> None:
        """Have the log say something of mappings that nobody asked for."""
        node = self.broker(1)
        recorder, table = node._mapped.recorder, node._mappings.logical
        assert recorder.record_alone(table, body, self.world.now_us // 1_000, lambda _reason, _now_ms: None)
        self.world.run_for(1_000)


def test_what_a_step_records_does_not_grow_with_what_the_broker_holds() -> None:
    lengths = []
    for queues in (2, 60):
        broker = Recorded(queues)
        before = len(broker.bodies())
        assert broker.prepare(broker.address, own(), elsewhere())[0][0] == OK
        (step,) = broker.bodies()[before:]
        lengths.append(len(step))
        assert broker.read() == broker.known()
    # Checksums have more digits or fewer.
    assert max(lengths) - min(lengths) < 20
    assert max(lengths) < 1_000


def test_segments_that_expire_together_are_one_record() -> None:
    broker = Recorded(3)
    for number in range(3):
        broker.send(broker.address, b"m", queue=number, topic="L")
        assert broker.seal(broker.address, number, number)[0] == (OK, "")
    before = broker.bodies()
    filled(broker, broker.address)
    told = shorts(broker.told(broker.address))
    assert told == {number: [(number, "Expired", 0, 0, 1)] for number in range(3)}
    said = [LogicalQueueMapping.decode(each) for each in broker.bodies() if each not in before]
    expired = [each for each in said if each.change is not None]
    assert [len(each.segments or ()) for each in expired] in ([3], [])
    # What was recorded again before its file was deleted is all of it, once.
    assert len(said) - len(expired) <= 1
    assert broker.read() == broker.known()


@pytest.mark.parametrize("seed", range(6))
def test_changes_come_to_the_same_whoever_reads_them(seed: int) -> None:
    """Whatever administrators do, and wherever files of the log begin."""
    broker, chance = Recorded(2), random.Random(seed)
    address = broker.address
    for number in range(25):
        index, queue = chance.randrange(4), chance.randrange(6)
        step = chance.randrange(8)
        if step == 0:
            broker.create(address, index, chance.choice(("Normal", "WriteOnly")))
        elif step == 1:
            broker.seal(address, queue, index)
        elif step == 2:
            broker.prepare(address, own(queue, index), elsewhere(index=index))
        elif step == 3:
            broker.reuse(address, queue, index, chance.choice(("Normal", "WriteOnly")))
        elif step == 4:
            broker.commit(address, number, 4, 2, **{f"q{index}": (0, 1 + chance.randrange(9))})
        elif step == 5:
            broker.map(address, queue, chance.randrange(-1, 4))
        elif step == 6:
            broker.world.run_for(QUEUE_REST_MS)
        else:
            broker.send(address, bytes(chance.choice((1, 20_000))), queue=0, topic="T")
    assert broker.read() == broker.known()
    kinds = {each is None for each in broker.changes()}
    assert kinds == {True, False}
    told = broker.told(address)
    broker.world.kill("broker1", power=True)
    broker.start("broker1")
    broker.until(lambda: broker.broker(1).serves)
    broker.until(lambda: broker.broker(1)._mappings.logical.kept("L") is not None)
    assert shorts(broker.told(address)) == shorts(told)


def test_a_change_of_another_mapping_than_the_newest_is_passed_over() -> None:
    broker = Recorded(2)
    for number in range(2):
        assert broker.seal(broker.address, number, number)[0] == (OK, "")
    known = broker.known()
    last = LogicalQueueMapping.decode(broker.bodies()[-1])
    assert last.change is not None
    # Once more, and a next one of a mapping that nobody has.
    follows, number = last.change.follows or 0, last.change.number or 0
    for change in (
        last.change,
        replace(last.change, follows=follows ^ 1, number=number + 1),
        replace(last.change, broker_name="broker-b"),
    ):
        broker.record(replace(last, change=change, segments=[]).encode())
        assert broker.known() == broker.read() == known
    assert [note.what for _, note in broker.notes].count("a record of a mapping cannot be read") == 3
    # What is asked for then follows what is known.
    assert broker.create(broker.address, 2, "Normal")[0] == (OK, "")
    assert broker.read() == broker.known() != known


def test_a_record_of_before_is_read_and_followed() -> None:
    """Releases before this one recorded all of a mapping with each step."""
    broker = Recorded(1)
    body = (
        b'{"brokerName":"broker-a","segments":[{"segment":{"firstMsgTimeMillis":-1,"lastMsgTimeMillis":-1,'
        b'"logicalQueueDelta":7,"logicalQueueIndex":0,"messageQueue":{"brokerName":"broker-a","queueId":0,'
        b'"topic":"L"},"offsetDelta":0,"offsetMax":-1,"state":"Normal"}}],"topic":"L","topicConfig":'
        b'{"order":false,"perm":6,"readQueueNums":1,"topicFilterType":"SINGLE_TAG","topicName":"L",'
        b'"topicSysFlag":0,"writeQueueNums":1}}'
    )
    broker.record(body)
    assert shorts(broker.told(broker.address)) == {0: [(0, "Normal", 7, 0, -1)]}
    assert broker.seal(broker.address, 0, 0)[0] == (OK, "")
    assert broker.changes()[-1] is not None
    assert shorts(broker.told(broker.address)) == {0: [(0, "Expired", 7, 0, 0)]}


def test_the_first_step_in_a_file_of_the_log_has_all_of_a_mapping() -> None:
    """Who copies no more of it than its last file reads what changed since that began."""
    broker = Recorded(2)
    begins = broker.store.log.last_file
    while broker.store.log.last_file == begins:
        broker.send(broker.address, bytes(20_000), topic="T")
    for number in range(2):
        assert broker.seal(broker.address, number, number)[0] == (OK, "")
    assert [each is None for each in broker.changes()[-2:]] == [True, False]
