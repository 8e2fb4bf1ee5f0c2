"""Brokers find each other, replicate, and fail over; what was acknowledged stays."""

from replispec.runtime.primitives.jsons import loads
from replispec.runtime.rocketmq.log import MessageStore
from replispec.runtime.sim import SimulatedStorage
from replispec.wire.rocketmq.broker import ClusterInfo
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.options import ReplicationOptions
from tests.broker.simulated_set import LOG_FILE_BYTES, NAME_SERVER, OK, BrokerSet


def log_of(brokers: BrokerSet, name: str) -> bytes:
    """The whole log of a stopped process."""
    storage = SimulatedStorage(brokers.world.processes[name].disk)
    log = MessageStore(storage.files("store"), file_bytes=LOG_FILE_BYTES).log
    found, at = b"", log.first
    while at < log.end:
        found += (run := bytes(log.view(at, log.end - at)))
        at += len(run)
    return found


def routes(brokers: BrokerSet) -> dict[int, str]:
    body = brokers.ask(NAME_SERVER, RequestCode.GET_BROKER_CLUSTER_INFO).body
    table = ClusterInfo.decode(body).broker_addr_table or {}
    return dict(table["broker-a"].broker_addrs or {}) if "broker-a" in table else {}


def test_two_brokers_become_master_and_member_and_are_known() -> None:
    brokers = BrokerSet()
    first, second = brokers.pair()
    received = brokers.master()
    assert (received.master_broker_id, received.master_address, received.master_epoch) == (1, first, 1)
    assert routes(brokers) == {0: first, 2: second}


def test_what_is_acknowledged_is_on_both_and_reads_back() -> None:
    brokers = BrokerSet()
    first, second = brokers.pair()
    for number in range(20):
        assert brokers.send(first, b"m%d" % number, queue=number % 2)[0] == OK
    code, received, records = brokers.pull(first, 0, queue=1)
    assert (code, received.next_begin_offset, received.max_offset) == (OK, 10, 10)
    assert all(b"m%d" % number in records for number in range(1, 20, 2))
    assert brokers.epochs(first).max_offset == brokers.epochs(second).max_offset
    for name in ("broker1", "broker2"):
        brokers.world.kill(name)
    assert log_of(brokers, "broker1") == log_of(brokers, "broker2") != b""


def test_a_replica_takes_no_messages_and_says_so() -> None:
    brokers = BrokerSet()
    _, second = brokers.pair()
    assert brokers.send(second, b"m")[0] == ResponseCode.SERVICE_NOT_AVAILABLE


def test_the_member_takes_over_and_the_old_master_comes_back_as_a_replica() -> None:
    brokers = BrokerSet()
    first, second = brokers.pair()
    for number in range(10):
        brokers.send(first, b"before %d" % number)
    brokers.world.kill("broker1")
    brokers.until(lambda: brokers.broker(2).serves, at_most_ms=1_000)
    brokers.until(lambda: brokers.members(2) == {2})
    for number in range(10):
        assert brokers.send(second, b"after %d" % number)[0] == OK
    brokers.start("broker1")
    brokers.until(lambda: brokers.members(2) == {1, 2})
    code, received, records = brokers.pull(second, 0)
    assert (code, received.max_offset) == (OK, 20)
    assert b"before 9" in records
    assert b"after 9" in records
    brokers.until(lambda: brokers.epochs(first).max_offset == brokers.epochs(second).max_offset)
    received_epochs = [(entry.epoch, entry.start_offset) for entry in brokers.epochs(first).epoch_list or ()]
    assert received_epochs == [
        (each.epoch, each.start_offset) for each in brokers.epochs(second).epoch_list or ()
    ]
    assert routes(brokers) == {0: second, 1: first}


def test_consumers_find_their_place_and_topics_at_the_new_master() -> None:
    brokers = BrokerSet()
    first, second = brokers.pair()
    brokers.send(first, b"m", topic="Orders")
    brokers.world.run_for(11_000)
    brokers.world.kill("broker1")
    brokers.until(lambda: brokers.broker(2).serves)
    assert brokers.pull(second, 0, topic="Orders")[0] == OK


def test_a_broker_alone_comes_back_as_what_it_was() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    for number in range(10):
        brokers.send(address, b"m%d" % number)
    brokers.world.kill("broker1", power=True)
    brokers.start("broker1")
    brokers.until(lambda: brokers.broker(1).serves)
    assert brokers.send(address, b"next")[1].queue_offset == 10
    assert brokers.pull(address, 0)[1].max_offset == 11
    assert brokers.master().master_broker_id == 1


def test_a_master_that_was_not_replaced_goes_on_in_its_epoch() -> None:
    brokers = BrokerSet()
    address = brokers.alone()
    brokers.send(address, b"m")
    brokers.world.pause("controller")
    brokers.world.kill("broker1")
    brokers.world.kill("controller")
    brokers.start("controller", "broker1")
    brokers.until(lambda: brokers.broker(1).serves)
    epochs = [entry.epoch for entry in brokers.epochs(address).epoch_list or ()]
    assert epochs[0] == 1
    assert brokers.pull(address, 0)[0] == OK


def test_a_hung_member_holds_messages_back_until_it_is_out() -> None:
    brokers = BrokerSet()
    first, _ = brokers.pair()
    brokers.send(first, b"m")
    brokers.world.pause("broker2")
    assert brokers.send(first, b"late")[0] == ResponseCode.FLUSH_SLAVE_TIMEOUT
    brokers.until(lambda: brokers.members(1) == {1})
    assert brokers.send(first, b"alone")[0] == OK
    assert brokers.pull(first, 0)[1].max_offset == 3


def test_with_fewer_members_than_wanted_messages_are_refused() -> None:
    brokers = BrokerSet()
    address = brokers.alone(min_in_sync_replicas=2)
    code, _ = brokers.send(address, b"m")
    assert code == ResponseCode.SYSTEM_ERROR
    assert brokers.epochs(address).max_offset == 0


def test_without_all_acknowledging_the_wanted_number_counts() -> None:
    brokers = BrokerSet()
    first, _ = brokers.pair(all_ack_in_sync_state_set=False, in_sync_replicas=2)
    assert brokers.send(first, b"m")[0] == OK
    brokers.world.pause("broker2")
    assert brokers.send(first, b"m")[0] == ResponseCode.FLUSH_SLAVE_TIMEOUT


def test_a_controller_that_is_gone_stops_neither_writing_nor_reading() -> None:
    brokers = BrokerSet()
    first, _ = brokers.pair()
    brokers.world.kill("controller")
    brokers.world.run_for(30_000)
    assert brokers.send(first, b"m")[0] == OK
    assert brokers.pull(first, 0)[0] == OK
    brokers.start("controller")
    brokers.world.run_for(20_000)
    assert brokers.send(first, b"m")[0] == OK


def test_a_learner_copies_exports_and_is_never_a_member_nor_master() -> None:
    brokers = BrokerSet()
    learner = brokers.add_learner(1)
    brokers.start("learner1")
    brokers.world.run_for(20_000)
    first = brokers.add_broker(1)
    brokers.start("broker1")
    brokers.until(lambda: brokers.broker(1).serves)
    for number in range(10):
        assert brokers.send(first, b"m%d" % number)[0] == OK
    brokers.until(lambda: brokers.epochs(learner).max_offset == brokers.epochs(first).max_offset)
    assert brokers.ask(learner, RequestCode.GET_BROKER_RUNTIME_INFO).header.code == OK
    assert brokers.send(learner, b"m")[0] == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    brokers.world.run_for(20_000)
    assert brokers.members(1) == {2}, "the learner got the first id, and is no member"
    brokers.world.kill("broker1")
    brokers.world.run_for(30_000)
    assert brokers.master().master_broker_id is None
    exported = brokers.world.processes["learner1"].disk.contents["export"].data
    lines = [loads(line) for line in bytes(exported).splitlines()]
    assert [line["text"] for line in lines if isinstance(line, dict)] == [f"m{n}" for n in range(10)]


def test_a_learner_that_was_killed_goes_on_where_it_stopped_and_follows_to_the_next_master() -> None:
    brokers = BrokerSet()
    first, second = brokers.pair()
    learner = brokers.add_learner(1)
    brokers.start("learner1")
    for number in range(10):
        brokers.send(first, b"m%d" % number)
    brokers.until(lambda: brokers.epochs(learner).max_offset == brokers.epochs(first).max_offset)
    brokers.world.kill("learner1", power=True)
    for number in range(10, 20):
        brokers.send(first, b"m%d" % number)
    brokers.start("learner1")
    brokers.world.kill("broker1")
    brokers.until(lambda: brokers.broker(2).serves)
    for number in range(20, 30):
        assert brokers.send(second, b"m%d" % number)[0] == OK
    brokers.until(lambda: brokers.epochs(learner).max_offset == brokers.epochs(second).max_offset)
    brokers.world.run_for(6_000)
    exported = brokers.world.processes["learner1"].disk.contents["export"].data
    lines = [loads(line) for line in bytes(exported).splitlines()]
    assert [line["text"] for line in lines if isinstance(line, dict)] == [f"m{n}" for n in range(30)]
    assert brokers.members(2) == {2}


def test_a_name_server_that_comes_later_hears_of_everybody() -> None:
    brokers = BrokerSet()
    brokers.world.kill("nameserver")
    first = brokers.alone()
    brokers.start("nameserver")
    brokers.until(lambda: routes(brokers) == {0: first}, at_most_ms=5_000)


def test_a_controller_that_comes_later_is_found() -> None:
    brokers = BrokerSet()
    brokers.world.kill("controller")
    brokers.add_broker(1)
    brokers.start("broker1")
    brokers.world.run_for(7_000)
    brokers.start("controller")
    brokers.until(lambda: brokers.broker(1).serves, at_most_ms=15_000)


def test_a_broker_that_the_controller_forgot_says_why_it_is_out() -> None:
    brokers = BrokerSet()
    brokers.alone()
    brokers.world.kill("controller")
    brokers.world.processes["controller"].disk.journals.clear()
    brokers.start("controller")
    brokers.world.run_for(20_000)
    said = [note.what for _, note in brokers.notes]
    assert "the controller does not know this broker's id" in said


def test_a_broker_that_stops_leaves_the_routes_at_once() -> None:
    brokers = BrokerSet()
    _, second = brokers.pair()
    brokers.world.stop("broker1")
    brokers.until(lambda: routes(brokers) == {0: second}, at_most_ms=5_000)


def test_messages_without_a_waiting_producer_are_on_the_disk_soon() -> None:
    brokers = BrokerSet()
    address = brokers.alone(replication=ReplicationOptions(flush_disk_type="ASYNC_FLUSH"))
    for number in range(5):
        assert brokers.send(address, b"m%d" % number)[0] == OK
    brokers.world.run_for(2_000)
    brokers.world.kill("broker1", power=True)
    assert log_of(brokers, "broker1").count(b"m4") == 1


def test_replicas_are_told_the_address_of_replication_that_is_configured() -> None:
    for ha_host, members in (("10.0.1.1", {1, 2}), ("10.0.9.9", {1})):
        brokers = BrokerSet()
        brokers.add_broker(1, broker_ip2=ha_host)
        brokers.add_broker(2)
        brokers.start("broker1", "broker2")
        brokers.world.run_for(30_000)
        assert brokers.members(1) == members, ha_host


def test_a_pair_without_name_servers_replicates() -> None:
    brokers = BrokerSet()
    first, second = brokers.pair(namesrv_addr=())
    assert brokers.send(first, b"m")[0] == 0
    brokers.until(lambda: brokers.epochs(second).max_offset == brokers.epochs(first).max_offset)
    brokers.world.kill("broker1")
    brokers.until(lambda: brokers.broker(2).serves)
    brokers.start("broker1")
    brokers.until(lambda: brokers.members(2) == {1, 2})
