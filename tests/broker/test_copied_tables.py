"""What a replica keeps of its master for the next one: groups, delays and request modes."""

from __future__ import annotations

import pytest

from replispec.broker.rocketmq.core.copied import CopiedTables
from replispec.broker.rocketmq.core.mappings import Mappings
from replispec.broker.rocketmq.core.offsets import ConsumerOffsets
from replispec.broker.rocketmq.core.slave import SlaveSync
from replispec.broker.rocketmq.core.topics import Topics
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.log import MessageStore
from replispec.runtime.sim import Disk, Rng, SimulatedFiles
from replispec.runtime.sim.disk import Content
from replispec.runtime.storage import StorageFailed
from replispec.runtime.world import Note, Outbox, Persist, Persisted, PersistFailed, Writes
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.client import SubscriptionGroupTable
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.options import BrokerOptions
from tests.broker.simulated_set import OK, BrokerSet
from tests.playbook import Answer, Playbook

MASTER = "10.0.0.9:10911"
GROUPS = (
    b'{"dataVersion":{"counter":7,"stateVersion":3,"timestamp":5},"forbiddenTable":{"g":{"T":1}},'
    b'"subscriptionGroupTable":{"g":{"consumeEnable":false,"groupName":"g","later":{"x":1}}}}'
)
DELAYS = b'{"offsetTable":{"3":17}}'
MODES = b'{"messageRequestModeMap":{"T":{"g":{"mode":"POP","popShareQueueNum":2}}}}'
TOLD = {
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: GROUPS,
    RequestCode.GET_ALL_DELAY_OFFSET: DELAYS,
    RequestCode.GET_ALL_MESSAGE_REQUEST_MODE: MODES,
}
# As Apache's write it: indented, keys that are numbers bare.
FILES = {
    constants.GROUPS_FILE: GROUPS.replace(b",", b",\n\t"),
    constants.DELAYS_FILE: b'{\n\t"offsetTable":{3:17\n\t}\n}',
    constants.REQUEST_MODES_FILE: MODES,
}
PERIOD_MS = 3_000
"""Shorter than the default."""


class Replica:
    """The part of a replica that copies, its disk, and a master that says what a test tells it to."""

    def __init__(self) -> None:
        self.says: dict[int, Answer] = {code: Answer(body=body) for code, body in TOLD.items()}
        self.files = SimulatedFiles(Disk(Rng(1)))
        self.playbook = Playbook({MASTER: self._answer}, files=self.files)
        outbox, writes = self.playbook.outbox, self.playbook.writes
        self.copied = CopiedTables(outbox, writes, self.files)
        topics = Topics(self.files, writes, template_queues=4, auto_create=True)
        offsets = ConsumerOffsets(outbox, writes, self.files, 5_000)
        options = BrokerOptions(broker_name="set", beside_log_period_ms=PERIOD_MS)
        self.mappings = Mappings(outbox, writes, self.files, MessageStore(self.files), "set")
        kept = topics, self.mappings, offsets
        self.slave = SlaveSync(outbox, self.playbook.calls, *kept, self.copied, options)

    def ask(self) -> None:
        """Ask the master for everything, and take what it says."""
        self.playbook >> (lambda now_ms: self.slave.follow(MASTER, now_ms))

    def kept(self) -> list[bytes | None]:
        """What a process that starts now would tell."""
        read = CopiedTables(Outbox(), Writes(Outbox()), self.files)
        tables = (read.groups.table, read.delays.table, read.modes.table)
        return [None if each is None else each.encode() for each in tables]

    def _answer(self, command: Command) -> Answer:
        return self.says.get(command.header.code, Answer(ResponseCode.SYSTEM_ERROR))


def test_a_replica_keeps_what_its_master_tells_with_what_it_does_not_know() -> None:
    replica = Replica()
    assert replica.kept() == [None, None, None]
    replica.ask()
    replica.playbook << [RequestCode.GET_ALL_TOPIC_CONFIG, RequestCode.GET_ALL_CONSUMER_OFFSET, *TOLD]
    assert replica.kept() == [GROUPS, DELAYS, MODES]


def test_it_asks_again_after_the_period_that_is_configured_and_nobody_without_a_master() -> None:
    replica = Replica()
    asked = [RequestCode.GET_ALL_TOPIC_CONFIG, RequestCode.GET_ALL_CONSUMER_OFFSET, *TOLD]
    replica.ask()
    replica.playbook << asked
    for wait_ms, then in ((PERIOD_MS - 1, []), (1, asked), (PERIOD_MS, asked)):
        replica.playbook.now_ms += wait_ms
        replica.playbook >> replica.slave.ticked << then
    replica.slave.stop()
    assert replica.slave.deadline_ms() is None
    replica.playbook.now_ms += 10 * PERIOD_MS
    replica.playbook >> replica.slave.ticked << []


def test_what_did_not_change_is_not_written_again() -> None:
    replica = Replica()
    replica.ask()
    before = replica.copied.groups.table
    replica.files.replace(constants.GROUPS_FILE, b"{}")
    replica.ask()
    assert replica.copied.groups.table is before
    assert replica.files.read(constants.GROUPS_FILE) == b"{}"
    replica.says[RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG] = Answer(body=GROUPS.replace(b":7,", b":8,"))
    replica.ask()
    assert replica.kept()[0] == GROUPS.replace(b":7,", b":8,")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (Answer(ResponseCode.REQUEST_CODE_NOT_SUPPORTED), ""),
        (Answer(body=b'{"subscriptionGroupTable":{},"offsetTable":{},"messageRequestModeMap":{}}'), ""),
        (Answer(), "is missing"),
        (Answer(body=b"[]"), ""),
        (Answer(body=b'{"offsetTable":{"\xff":1}}'), ""),
    ],
)
def test_what_is_refused_empty_or_no_table_leaves_what_is_kept(said: Answer, words: str) -> None:
    replica = Replica()
    replica.ask()
    replica.says = dict.fromkeys(TOLD, said)
    replica.ask()
    assert replica.kept() == [GROUPS, DELAYS, MODES]
    is_bad = said.code == OK and b"{}" not in said.body
    assert [note.what for note in replica.playbook.notes] == [
        "what the master keeps cannot be copied" for _ in TOLD if is_bad
    ]
    assert all(words in str(note) for note in replica.playbook.notes)


@pytest.mark.parametrize(
    "number", ["9223372036854775808", "-9223372036854775809", "18446744073709551616", "9" * 5_000]
)
def test_a_number_beyond_64_bits_is_refused_with_a_line_and_leaves_what_is_kept(number: str) -> None:
    replica = Replica()
    replica.ask()
    beyond = number.encode()
    replica.says = {
        RequestCode.GET_ALL_TOPIC_CONFIG: Answer(
            body=b'{"topicConfigTable":{"T":{"topicName":"T","perm":6,"readQueueNums":%s}}}' % beyond
        ),
        RequestCode.GET_ALL_CONSUMER_OFFSET: Answer(body=b'{"offsetTable":{"T@g":{"0":%s}}}' % beyond),
        RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: Answer(body=GROUPS.replace(b":7,", b":%s," % beyond)),
        RequestCode.GET_ALL_DELAY_OFFSET: Answer(body=DELAYS.replace(b"17", beyond)),
    }
    replica.ask()
    assert replica.kept() == [GROUPS, DELAYS, MODES]
    assert [note.what for note in replica.playbook.notes] == ["what the master keeps cannot be copied"] * 4


@pytest.mark.parametrize("number", [b"9223372036854775808", b"18446744073709551616", b"-1e300"])
def test_a_number_beyond_64_bits_in_what_is_only_kept_can_be_read_again(number: bytes) -> None:
    replica = Replica()
    modes = Answer(body=MODES.replace(b":2}", b":%s}" % number))
    replica.says[RequestCode.GET_ALL_MESSAGE_REQUEST_MODE] = modes
    replica.ask()
    assert replica.kept()[2] is not None
    assert replica.playbook.notes == []


def test_a_table_that_is_too_long_is_not_kept_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    replica = Replica()
    monkeypatch.setattr(constants, "COPIED_TABLE_BYTES_MAX", len(DELAYS))
    replica.ask()
    assert replica.kept() == [None, DELAYS, None]
    assert [note.what for note in replica.playbook.notes] == [
        "a table cannot be kept for the next master"
    ] * 2


def test_a_file_that_is_too_long_to_be_told_is_told_to_nobody_and_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An answer beyond what its peers take would end the connection, and take the answers before it along."""
    files = SimulatedFiles(Disk(Rng(1)))
    for name, data in FILES.items():
        files.replace(name, data)
    monkeypatch.setattr(constants, "COPIED_TABLE_BYTES_MAX", len(DELAYS))
    outbox = Outbox()
    found = CopiedTables(outbox, Writes(outbox), files)
    assert [found.groups.table, found.modes.table] == [None, None]
    assert found.delays.table is not None
    notes = [effect for effect in outbox.take() if isinstance(effect, Note)]
    assert [dict(note.values)["file"] for note in notes] == [
        constants.GROUPS_FILE,
        constants.REQUEST_MODES_FILE,
    ]
    assert files.read(constants.GROUPS_FILE) == FILES[constants.GROUPS_FILE]


def test_what_the_disk_refuses_is_not_told_and_tried_again() -> None:
    outbox = Outbox()
    writes = Writes(outbox)
    files = SimulatedFiles(Disk(Rng(1)))
    tables = CopiedTables(outbox, writes, files)
    table = SubscriptionGroupTable.decode(GROUPS)
    tables.groups.adopt(table)
    tables.groups.adopt(SubscriptionGroupTable())
    (asked,) = [each for each in outbox.take() if isinstance(each, Persist)]
    writes.answered(PersistFailed(asked.token, "no room", is_full=True, now_ms=2_000))
    assert tables.groups.table is None
    assert [each.what for each in outbox.take() if isinstance(each, Note)] == [
        "a table cannot be kept for the next master"
    ]
    tables.groups.adopt(table)
    (asked,) = [each for each in outbox.take() if isinstance(each, Persist)]
    writes.answered(Persisted(asked.token, 3_000))
    assert tables.groups.table == table


def test_a_damaged_file_is_refused_by_name_with_the_way_out() -> None:
    replica = Replica()
    replica.ask()
    data = replica.files.read(constants.DELAYS_FILE)
    assert data is not None
    replica.files.replace(constants.DELAYS_FILE, bytes(data).replace(b"17", b"16"))
    with pytest.raises(StorageFailed, match=f"{constants.DELAYS_FILE}: its checksum .*, and it is copied"):
        replica.kept()


def told(brokers: BrokerSet, address: str) -> list[bytes | int]:
    """What a broker answers a replica of Apache's: bodies, and codes of refusals."""
    answers = [brokers.ask(address, code) for code in TOLD]
    return [each.body if each.header.code == OK else each.header.code for each in answers]


def test_what_a_master_of_apaches_left_outlives_two_of_ours() -> None:
    """A store of Apache's becomes ours; its tables go from master to replica, twice."""
    brokers = BrokerSet()
    addresses = [brokers.add_broker(number) for number in (1, 2, 3)]
    contents = brokers.world.processes["broker1"].disk.contents
    contents.update({f"store/{name}": Content(bytearray(data)) for name, data in FILES.items()})
    brokers.start("broker1", "broker2")
    brokers.until(lambda: brokers.members(1) == {1, 2})
    brokers.until(lambda: told(brokers, addresses[1]) == list(TOLD.values()))
    brokers.world.kill("broker1")
    brokers.until(lambda: brokers.broker(2).serves)
    brokers.start("broker3")
    brokers.until(lambda: brokers.members(2) == {2, 3})
    brokers.until(lambda: told(brokers, addresses[2]) == list(TOLD.values()))
    brokers.world.kill("broker3", power=True)
    brokers.start("broker3")
    assert told(brokers, addresses[2]) == list(TOLD.values())


def test_empty_tables_of_a_store_of_apaches_are_told_to_nobody() -> None:
    brokers = BrokerSet()
    address = brokers.add_broker(1)
    contents = brokers.world.processes["broker1"].disk.contents
    empty = b'{"subscriptionGroupTable":{},"offsetTable":{},"messageRequestModeMap":{}}'
    contents.update({f"store/{name}": Content(bytearray(empty)) for name in FILES})
    brokers.start("broker1")
    assert told(brokers, address) == [ResponseCode.REQUEST_CODE_NOT_SUPPORTED] * 3


@pytest.mark.parametrize(("opens", "closes"), [("[", "]"), ('{"a":', "}")])
@pytest.mark.parametrize("depth", [129, 300, 1_000])
def test_what_is_nested_deeper_than_can_be_written_again_is_one_line(
    opens: str, closes: str, depth: int
) -> None:
    replica = Replica()
    replica.ask()
    deep = (opens * depth + "1" + closes * depth).encode()
    replica.says[RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG] = Answer(
        body=b'{"subscriptionGroupTable":{"g":{"groupName":"g","later":' + deep + b"}}}"
    )
    topics = b'{"topicConfigTable":{"T":{"topicName":"T","later":' + deep + b'}},"dataVersion":{"counter":1}}'
    replica.says[RequestCode.GET_ALL_TOPIC_CONFIG] = Answer(body=topics)
    replica.ask()
    assert replica.kept() == [GROUPS, DELAYS, MODES]
    assert len(replica.playbook.notes) == 2
    assert all("nested more than 128 deep" in str(note) for note in replica.playbook.notes)


def test_what_is_nested_less_is_kept() -> None:
    replica = Replica()
    told = b'{"subscriptionGroupTable":{"g":{"groupName":"g","later":' + b"[" * 127 + b"]" * 127 + b"}}}"
    replica.says[RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG] = Answer(body=told)
    replica.ask()
    assert replica.kept()[0] == told
