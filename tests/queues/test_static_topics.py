"""Mappings of static topics: records of the log, as safe as messages, and gone where they are cut."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from replispec.broker.rocketmq.core.mappings import Mappings
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.log import MessageStore
from replispec.runtime.sim import Disk, Left, Rng, SimulatedFiles, SimulatedStorage
from replispec.runtime.storage import Stores
from replispec.runtime.world import Outbox, Persist, Writes
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.broker import (
    DataVersion,
    GetRouteInfoRequest,
    TopicConfig,
    TopicConfigTable,
    TopicQueueMappingTable,
)
from replispec.wire.rocketmq.client import (
    CreateTopicRequest,
    GetMaxOffsetRequest,
    GetMinOffsetRequest,
    GetTopicConfigRequest,
    SearchOffsetRequest,
)
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.static_topic import (
    LogicQueueItems,
    LogicQueueMappingItem,
    TopicConfigAndQueueMapping,
    TopicQueueMappingDetail,
    UpdateStaticTopicRequest,
)
from tests.broker.simulated_set import OK, BrokerSet
from tests.runtime.storage.writing import carried_out

SET_IT = RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC
Place = tuple[str, int, int]
"""Broker, physical queue, logical start (-1: not decided)."""


def items(*places: Place) -> LogicQueueItems:
    """The items of a logical queue."""
    return LogicQueueItems(
        [
            LogicQueueMappingItem(
                bname=broker,
                end_offset=-1,
                gen=number,
                logic_offset=start,
                queue_id=queue,
                start_offset=0,
                time_of_end=-1,
                time_of_start=-1,
            )
            for number, (broker, queue, start) in enumerate(places)
        ]
    )


def detail(
    epoch: int, *queues: list[Place], topic: str = "S", total: int = 0, bname: str = "broker-a"
) -> Any:
    """A mapping; queues that are not named are empty lists."""
    return TopicQueueMappingDetail(
        bname=bname,
        curr_id_map={},
        dirty=False,
        epoch=epoch,
        hosted_queues={index: items(*places) for index, places in enumerate(queues) if places},
        scope=constants.MAPPING_SCOPE,
        topic=topic,
        total_queues=total or len(queues),
    )


def header(topic: str = "S", queues: int = 8, **more: Any) -> UpdateStaticTopicRequest:
    """What goes before a mapping."""
    made = UpdateStaticTopicRequest(
        topic=topic,
        default_topic=constants.TEMPLATE_TOPIC,
        read_queue_nums=queues,
        write_queue_nums=queues,
        perm=6,
        topic_filter_type=constants.SINGLE_TAG,
        order=False,
        force=False,
    )
    return replace(made, **more)


def put(brokers: BrokerSet, address: str, said: TopicQueueMappingDetail, **more: Any) -> tuple[int, str]:
    """Set a mapping: code and remark."""
    answer = brokers.ask(address, SET_IT, header(said.topic or "", **more), said.encode()).header
    return answer.code, answer.remark or ""


def told(brokers: BrokerSet, address: str, topic: str = "S") -> TopicConfigAndQueueMapping | None:
    """A topic with its mapping, as a broker tells it; None for no such topic."""
    answer = brokers.ask(address, RequestCode.GET_TOPIC_CONFIG, GetTopicConfigRequest(topic, True))
    return TopicConfigAndQueueMapping.decode(answer.body) if answer.header.code == OK else None


FIRST = detail(5, [("broker-a", 0, 0)], [("broker-b", 0, 0)])


def test_a_mapping_that_is_set_is_told_with_its_topic_and_without_where_nobody_asks() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    assert put(brokers, address, FIRST) == (OK, "")
    found = told(brokers, address)
    assert found is not None
    assert found.mapping_detail == FIRST
    assert (found.read_queue_nums, found.write_queue_nums, found.perm) == (8, 8, 6)
    answer = brokers.ask(address, RequestCode.GET_TOPIC_CONFIG, GetTopicConfigRequest("S"))
    assert TopicConfigAndQueueMapping.decode(answer.body).mapping_detail is None


def test_a_mapping_may_name_no_queue_and_have_a_topic_without_any() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    assert put(brokers, address, detail(5, total=2), queues=0)[0] == OK
    found = told(brokers, address)
    assert found is not None
    assert found.mapping_detail is not None
    assert (found.read_queue_nums, found.mapping_detail.total_queues) == (0, 2)
    assert put(brokers, address, detail(4, total=2), queues=0)[0] == ResponseCode.SYSTEM_ERROR


REFUSED = {
    "an older epoch": (detail(4, [("broker-a", 0, 0)], total=2), "epoch 4 is older than 5"),
    "an epoch that no clock will show": (
        detail(10**18, [("broker-a", 0, 0)], total=2),
        "no such mapping can be: the epoch 1000000000000000000 is far ahead of the clock",
    ),
    "of another broker": (
        detail(6, [("broker-a", 0, 0)], total=2, bname="broker-b"),
        "this mapping is of another broker",
    ),
    "a changed item": (detail(6, [("broker-a", 1, 0)], total=2), "an item does not change what it said"),
    "another leader under an equal epoch": (
        detail(5, [("broker-a", 0, 0), ("broker-b", 1, 10_000)], total=2),
        "another broker leads in epoch 5",
    ),
    "a physical queue twice": (
        detail(6, [], [], [("broker-a", 0, 0)]),
        "no such mapping can be: the queue 0 of broker-a serves twice",
    ),
    "a logical queue beyond all": (
        detail(6, [], [], [("broker-a", 2, 0)], total=2),
        "no such mapping can be: there is no logical queue 2",
    ),
    "of another topic": (
        detail(6, [("broker-a", 0, 0)], topic="Other"),
        "no such mapping can be: no mapping of S",
    ),
}


@pytest.mark.parametrize("why", REFUSED)
def test_a_mapping_is_refused_and_the_one_before_stays(why: str) -> None:
    said, remark = REFUSED[why]
    brokers = BrokerSet()
    address = brokers.alone()
    assert put(brokers, address, FIRST)[0] == OK
    end = brokers.epochs(address).max_offset
    answer = brokers.ask(address, SET_IT, header(), said.encode()).header
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, remark)
    assert brokers.epochs(address).max_offset == end
    found = told(brokers, address)
    assert found is not None
    assert found.mapping_detail == FIRST


def test_by_force_an_older_epoch_and_other_items_are_taken() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    assert put(brokers, address, FIRST)[0] == OK
    assert put(brokers, address, detail(3, [("broker-a", 5, 0)], total=2), force=True)[0] == OK
    found = told(brokers, address)
    assert found is not None
    assert found.mapping_detail is not None
    assert found.mapping_detail.epoch == 3
    # What it does not name is kept.
    assert set(found.mapping_detail.hosted_queues or {}) == {0, 1}


def test_a_replica_refuses_and_a_plain_change_of_a_static_topic_is_refused() -> None:
    brokers = BrokerSet()
    first, second = brokers.pair()
    assert put(brokers, second, FIRST)[0] == ResponseCode.SERVICE_NOT_AVAILABLE
    assert put(brokers, first, FIRST)[0] == OK
    plain = CreateTopicRequest("S", constants.TEMPLATE_TOPIC, 4, 4, 6, constants.SINGLE_TAG, 0, False)
    answer = brokers.ask(first, RequestCode.UPDATE_AND_CREATE_TOPIC, plain).header
    assert answer.code == ResponseCode.INVALID_PARAMETER


def test_an_acknowledged_mapping_survives_its_master() -> None:
    brokers = BrokerSet()
    first, second = brokers.pair()
    assert put(brokers, first, FIRST)[0] == OK
    brokers.world.kill("broker1", power=True)
    brokers.until(lambda: brokers.broker(2).serves)
    brokers.until(lambda: told(brokers, second) is not None)
    found = told(brokers, second)
    assert found is not None
    assert found.mapping_detail == FIRST
    assert put(brokers, second, detail(4, [("broker-a", 0, 0)], total=2))[1] == "epoch 4 is older than 5"


def test_a_mapping_is_not_acknowledged_before_the_set_has_it_and_is_gone_when_it_is_cut() -> None:
    brokers = BrokerSet()
    first, second = brokers.pair()
    assert put(brokers, first, FIRST)[0] == OK
    # Nobody lets the replica leave the set.
    brokers.world.kill("controller")
    brokers.world.kill("broker2")
    waiting = brokers.asked(first, SET_IT, header(), detail(9, [("broker-a", 0, 0)], total=2).encode())
    brokers.world.run_for(500)
    assert not waiting
    longer = brokers.epochs(first).max_offset or 0
    brokers.world.kill("broker1")
    brokers.start("controller")
    brokers.start("broker2")
    brokers.until(lambda: brokers.broker(2).serves)
    assert (brokers.epochs(second).max_offset or 0) < longer
    brokers.start("broker1")
    brokers.until(lambda: brokers.members(2) == {1, 2})
    brokers.until(lambda: told(brokers, second) is not None)
    for address in (first, second):
        found = told(brokers, address)
        assert found is not None
        assert found.mapping_detail == FIRST
    newest = brokers.broker(1)._mappings.static.newest("S")
    assert newest is not None
    assert newest.detail == FIRST


@pytest.mark.parametrize("power", [False, True])
def test_a_broker_that_comes_back_has_its_mappings_of_its_log_and_needs_no_file(power: bool) -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    assert put(brokers, address, FIRST)[0] == OK
    brokers.world.kill("broker1", power=power)
    disk = brokers.world.processes["broker1"].disk
    for name in [
        each for each in disk.contents if each.endswith((constants.MAPPING_FILE, constants.TOPICS_FILE))
    ]:
        del disk.contents[name]
    brokers.start("broker1")
    brokers.until(lambda: brokers.broker(1).serves)
    brokers.until(lambda: told(brokers, address) is not None)
    found = told(brokers, address)
    assert found is not None
    assert found.mapping_detail == FIRST
    assert found.read_queue_nums == 8


def test_the_file_has_the_form_of_apache() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    put(brokers, address, FIRST)
    brokers.world.run_for(constants.MAPPING_COPY_MS)
    files = SimulatedStorage(brokers.world.processes["broker1"].disk).files("store")
    table = TopicQueueMappingTable.decode(files.read(constants.MAPPING_FILE) or b"")
    assert table.topic_queue_mapping_info_map == {"S": FIRST}


def test_name_servers_and_replicas_are_told() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    put(brokers, address, FIRST)
    table = TopicConfigTable.decode(brokers.ask(address, RequestCode.GET_ALL_TOPIC_CONFIG).body)
    assert (table.topic_queue_mapping_detail_map or {}) == {"S": FIRST}
    brokers.world.run_for(2_000)
    asked = GetRouteInfoRequest("S")
    assert brokers.ask("10.0.0.2:9876", RequestCode.GET_ROUTEINFO_BY_TOPIC, asked).header.code == OK


def test_nobody_reads_or_writes_the_topic_of_the_records() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    put(brokers, address, FIRST)
    topic = constants.MAPPING_TOPIC
    assert brokers.pull(address, 0, topic=topic)[0] == ResponseCode.TOPIC_NOT_EXIST
    assert brokers.send(address, b"m", topic=topic)[0] == ResponseCode.MESSAGE_ILLEGAL
    for code, asked in (
        (RequestCode.GET_MAX_OFFSET, GetMaxOffsetRequest(topic, 0)),
        (RequestCode.GET_MIN_OFFSET, GetMinOffsetRequest(topic, 0)),
        (RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, SearchOffsetRequest(topic, 0, 0)),
    ):
        assert brokers.ask(address, code, asked).header.code == ResponseCode.TOPIC_NOT_EXIST
    table = TopicConfigTable.decode(brokers.ask(address, RequestCode.GET_ALL_TOPIC_CONFIG).body)
    assert topic not in (table.topic_config_table or {})


def test_a_learner_exports_no_mapping() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    brokers.add_learner(1)
    brokers.start("learner1")
    put(brokers, address, FIRST)
    brokers.send(address, b"m")
    brokers.world.run_for(5_000)
    files = brokers.world.processes["learner1"].disk.contents
    lines = b"".join(bytes(each.data) for name, each in files.items() if "export" in name).splitlines()
    assert len(lines) == 1
    assert b'"T"' in lines[0]


def test_a_mapping_is_recorded_again_before_its_record_is_deleted() -> None:
    brokers = BrokerSet()
    first, second = brokers.pair()
    put(brokers, first, FIRST)
    for number in range(6):
        brokers.send(first, bytes(30_000), queue=number % 4)
    node = brokers.broker(1)
    log = node._log.store.log
    brokers.until(lambda: node._log.safe_to_delete(True) > log.file_bytes)
    now_ms = 1 << 40
    for _ in range(3):
        node._log.retention._clean(now_ms, takes_young=True)
        brokers.world.run_for(1_000)
    assert log.first > 0
    brokers.world.kill("broker1")
    brokers.until(lambda: brokers.broker(2).serves)
    # A third one has nothing but what the log has now.
    brokers.broker(2)._log.retention._clean(now_ms, takes_young=True)
    third = brokers.add_broker(3)
    brokers.start("broker3")
    brokers.until(lambda: 3 in brokers.members(2))
    for address in (second, third):
        brokers.until(lambda address=address: told(brokers, address) is not None)  # type: ignore[misc]
        found = told(brokers, address)
        assert found is not None
        assert found.mapping_detail == FIRST
    newest = brokers.broker(3)._mappings.static.newest("S")
    assert newest is not None
    assert newest.is_recorded


CRASHES = 30


def lived(number: int, left: Left) -> int:
    """A broker that is told one mapping after the other and crashes in one of its changes comes back with
    the last that it acknowledged, or the one after; returns how many changes there were."""
    brokers = BrokerSet()
    address = brokers.add_broker(1)
    victim = brokers.world.processes["broker1"]
    victim.loses_power = bool(number % 2)
    victim.disk.crash_at(number, left)
    epoch = acknowledged = 0

    def is_dead() -> bool:
        return not victim.is_alive

    while epoch < 4:
        if is_dead():
            brokers.world.run_for(300)
            brokers.world.start("broker1")
        brokers.world.run_until(lambda: is_dead() or brokers.broker(1).serves, at_most_ms=60_000)
        if is_dead():
            continue
        epoch += 1
        said = detail(epoch, [("broker-a", 0, 0)])
        answers = brokers.asked(address, SET_IT, header(), said.encode())
        brokers.world.run_until(lambda found=answers: bool(found), at_most_ms=60_000)  # type: ignore[misc]
        if isinstance(answers[0], Command) and answers[0].header.code == OK:
            acknowledged = epoch
        if is_dead():
            brokers.world.run_for(300)
            brokers.world.start("broker1")
            brokers.until(lambda: brokers.broker(1).serves)
            brokers.world.run_for(500)
        found = told(brokers, address)
        kept = 0 if found is None or found.mapping_detail is None else found.mapping_detail.epoch
        assert acknowledged <= (kept or 0) <= epoch
    return len(victim.disk.changes)


@pytest.mark.parametrize("part", range(4))
def test_a_crash_inside_any_change_costs_no_mapping_that_was_acknowledged(part: int) -> None:
    lefts = (Left.NOTHING, Left.PART, Left.ALL)
    for number in range(part + 1, CRASHES, 4):
        lived(number, lefts[number % 3])


def test_every_change_is_among_those_that_are_tried() -> None:
    assert lived(10_000, Left.ALL) < CRASHES


def test_what_a_store_of_apache_has_is_recorded_by_the_first_master() -> None:
    brokers = BrokerSet()
    address = brokers.add_broker(1)
    files = SimulatedStorage(brokers.world.processes["broker1"].disk).files("store")
    config = TopicConfig({}, False, 6, 8, constants.SINGLE_TAG, "S", 0, 8)
    topics = TopicConfigTable(DataVersion(3, 0, 0), None, {"S": config}, None, None)
    said = {"S": FIRST, "Other": detail(5, [("broker-x", 0, 0)], topic="Other", bname="broker-x")}
    files.replace(constants.TOPICS_FILE, topics.encode(bare_keys=True))
    table = TopicQueueMappingTable(DataVersion(7, 0, 0), said)
    files.replace(constants.MAPPING_FILE, table.encode(bare_keys=True))
    brokers.start("broker1")
    brokers.until(lambda: brokers.broker(1).serves)
    found = told(brokers, address)
    assert found is not None
    assert found.mapping_detail == FIRST
    newest = brokers.broker(1)._mappings.static.newest("S")
    assert newest is not None
    assert newest.is_recorded
    # A file may be another broker's.
    assert told(brokers, address, "Other") is None
    assert [note.what for _, note in brokers.notes].count("a mapping is passed over") == 1


def test_what_a_master_of_apache_tells_is_kept_as_far_as_it_is_newer() -> None:
    outbox = Outbox()
    files = SimulatedFiles(Disk(Rng(1)))
    writes = Writes(outbox)
    mappings = Mappings(outbox, writes, files, MessageStore(files), "broker-a")
    for epoch in (5, 7, 6):
        mappings.adopt({"S": detail(epoch, [("broker-a", 0, 0)])})
    for effect in outbox.take():
        assert isinstance(effect, Persist)
        writes.answered(carried_out(effect, Stores(files)))
    for effect in outbox.take():
        assert isinstance(effect, Persist)
        writes.answered(carried_out(effect, Stores(files)))
    again = Mappings(Outbox(), Writes(Outbox()), files, MessageStore(files), "broker-a")
    assert again.details() == {"S": detail(7, [("broker-a", 0, 0)])}
    assert [topic for topic, _ in again.unsafe()] == ["S"]
