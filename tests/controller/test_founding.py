"""The store of a controller that was alone becomes that of a group's first member: all of it or nothing."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from replispec.controller.consensus import LogDamaged
from replispec.controller.consensus.raft import ControllerGroup
from replispec.controller.rocketmq.founding import (
    FirstState,
    check_empty,
    founded,
    lived_alone,
    told_by_brokers,
    told_of,
)
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.sim import Disk, Left, Rng, SimulatedStorage
from replispec.runtime.sim.disk import Crashed
from replispec.runtime.storage import Stores
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.controller import (
    BrokerReplicasInfo,
    EpochEntry,
    EpochEntryCache,
    GetNextBrokerIdRequest,
    GetNextBrokerIdResponse,
    ReplicaIdentity,
    ReplicasInfo,
)
from tests.house.tree import ROOT
from tests.sim.changing import MEMBERS, addition, are_members, become, comes, said
from tests.sim.controller_script import CLUSTER, question
from tests.sim.controller_script import NAME as SET
from tests.sim.controllers import PORT, Controllers, properties
from tests.sim.test_controllers import SETS, application, halted, lived_in_a_group, served

NAME = "controller/controller.log.sqlite"
JAVA = ROOT / "spark_replay/captures/g_mqadmin.pcap"
GROUP = ControllerGroup("simulation", "n1", {"n1": f"127.0.0.1:{PORT}"})
FIRST = properties("controller-1", 1)


def alone(*, short: bool) -> Controllers:
    """A controller that was alone and has served, and is stopped."""
    group = Controllers(31, size=1, is_short=short).start()
    served(group)
    return group


def carried(disk: Disk) -> None:
    """What `replispec admin found` does."""
    journal = SimulatedStorage(disk).journal(NAME)
    Stores(journal=journal).carry_out([founded(GROUP, lived_alone(journal))])


@pytest.mark.parametrize("short", [False, True], ids=["log", "snapshot"])
def test_what_was_on_record_is_on_record_in_the_group_and_others_join_it(short: bool) -> None:
    group = alone(short=short)
    known = group.record("controller-1")
    assert known
    group.world.kill("controller-1")
    carried(group.world.processes["controller-1"].disk)
    group.world.start("controller-1")
    group.leader()
    group.world.run_for(500)
    assert group.record("controller-1") == known
    header, _ = said(group.ask("controller-1", MEMBERS)[0])
    assert header.group == "simulation/n1"
    for name in ("controller-2", "controller-3"):
        comes(group, name, controllerJoin=f"127.0.0.1:{PORT}")
        assert group.codes(group.leader(), addition(name)) == [ResponseCode.SUCCESS]
        assert group.world.run_until(partial(are_members, group, set(group.hosts)), at_most_ms=20_000)
    become(group, {"controller-1", "controller-2", "controller-3"})
    group.world.run_for(1_000)
    assert group.records() == 1
    # The first one is as good as any: the others go on without it.
    group.world.kill("controller-1")
    assert group.record(group.leader()) == known
    assert group.codes(group.leader(), application(4)) == [ResponseCode.SUCCESS]


def test_a_crash_inside_the_write_leaves_the_store_of_before_or_of_after() -> None:
    outcomes = set()
    for left in (Left.NOTHING, Left.ALL):
        group = alone(short=False)
        known = group.record("controller-1")
        group.world.kill("controller-1")
        process = group.world.processes["controller-1"]
        process.disk.crash_at(1, left)
        with pytest.raises(Crashed):
            carried(process.disk)
        process.disk.mend()
        group.world.start("controller-1")
        group.leader()
        group.world.run_for(500)
        assert group.record("controller-1") == known
        outcomes.add(group.node("controller-1")._log.member is None)
    assert outcomes == {True, False}


def test_a_store_that_was_carried_over_is_that_of_nobody_who_is_alone() -> None:
    group = alone(short=False)
    group.world.kill("controller-1")
    disk = group.world.processes["controller-1"].disk
    carried(disk)
    of = FIRST | {"controllerDLegerPeers": "", "listenPort": PORT, "bindAddress": "127.0.0.1"}
    assert "a controller that is alone cannot go on with it" in halted(of, disk)


def test_what_is_no_store_of_a_controller_that_was_alone_is_refused_by_name() -> None:
    with pytest.raises(LogDamaged, match="there is no log of a controller"):
        carried(Disk(Rng(1)))
    with pytest.raises(LogDamaged, match="that of member 'n1' of the group 'simulation/n1,n2,n3'"):
        carried(lived_in_a_group())


def test_the_first_of_three_still_refuses_the_store_of_before() -> None:
    group = alone(short=False)
    group.world.kill("controller-1")
    disk = group.world.processes["controller-1"].disk
    assert "the log is that of a controller that was alone" in halted(properties("controller-1"), disk)


# What living controllers tell


def test_what_a_controller_tells_is_on_record_in_the_group_but_for_check_codes() -> None:
    group = alone(short=False)
    known: Any = group.record("controller-1")[SET]
    next_id = question(RequestCode.CONTROLLER_GET_NEXT_BROKER_ID, GetNextBrokerIdRequest(CLUSTER, SET))
    sets, granted = group.ask("controller-1", SETS, next_id)
    info = (BrokerReplicasInfo.decode(sets.body).replicas_info_table or {})[SET]
    next_broker_id = GetNextBrokerIdResponse.from_ext_fields(granted.header.ext_fields or {}).next_broker_id
    first = FirstState([told_of(SET, CLUSTER, info, next_broker_id or 0)], index=1, term=1)
    group.world.kill("controller-1")
    process = group.world.processes["controller-1"]
    process.disk = Disk(Rng(2))
    journal = SimulatedStorage(process.disk).journal(NAME)
    check_empty(journal)
    Stores(journal=journal).carry_out([founded(GROUP, first)])
    with pytest.raises(LogDamaged, match="there is a log already"):
        check_empty(journal)
    group.world.start("controller-1")
    group.leader()
    group.world.run_for(500)
    found: Any = group.record("controller-1")[SET]
    state, variables = found
    assert (state, replace(variables, check_codes=known[1].check_codes)) == known
    assert set(variables.check_codes.values()) == {""}


def test_what_a_controller_of_apache_rocketmq_tells_is_read() -> None:
    """As 5.4.0 answered in a capture that the package carries."""
    body = re.findall(rb'{"replicasInfoTable":{"broker-a":.*?}}}', JAVA.read_bytes())[2]
    info = (BrokerReplicasInfo.decode(body).replicas_info_table or {})["broker-a"]
    found = told_of("broker-a", "DefaultCluster", info, 3)
    assert (found.state, found.master, found.master_epoch, found.sync_state_set_epoch) == ("LED", 2, 2, 4)
    assert (list(found.sync_state_set), list(found.broker_ids), found.next_broker_id) == ([1, 2], [1, 2], 3)
    assert dict(found.addresses) == {1: "127.0.0.1:30910", 2: "127.0.0.1:30920"}


# What living brokers tell


def broker(number: int, *epochs: int) -> EpochEntryCache:
    """What a broker with this id answers; 0 for a master."""
    listed = [EpochEntry(start_offset=0, epoch=epoch) for epoch in epochs]
    return EpochEntryCache(broker_id=number, broker_name="a", cluster_name="c", epoch_list=listed)


def test_a_set_that_its_brokers_tell_of_begins_with_the_election_of_its_master() -> None:
    answers = {"127.0.0.1:1": broker(0, 1, 4), "127.0.0.1:2": broker(1, 1), "127.0.0.1:3": broker(3, 1, 4)}
    found = told_by_brokers("a", answers, 2)
    # Nobody but the master is known to have everything, and the next masterEpoch is after all that were.
    assert (found.state, found.HasField("master"), found.master_epoch) == ("LEADERLESS", False, 4)
    assert (list(found.sync_state_set), list(found.broker_ids)) == ([2], [1, 2, 3])
    assert dict(found.addresses) == {1: "127.0.0.1:2", 2: "127.0.0.1:1", 3: "127.0.0.1:3"}
    assert found.next_broker_id > 3 + 1


@pytest.mark.parametrize(
    ("answers", "says"),
    [
        ({"x:1": broker(1, 1)}, "nobody of a says that it is master"),
        ({"x:1": broker(0, 1), "x:2": broker(0, 2)}, "x:1 and x:2 of a says that it is master"),
        ({"x:1": broker(0, 1), "x:2": broker(2, 1)}, "x:1 and x:2 of a have the id 2"),
        ({"x:1": broker(0, 1), "x:2": broker(1, 1, 2)}, "x:2 of a knows a masterEpoch after that of x:1"),
    ],
    ids=["nobody", "two", "ids", "later"],
)
def test_brokers_that_contradict_each_other_found_nothing(
    answers: dict[str, EpochEntryCache], says: str
) -> None:
    with pytest.raises(RemoteProtocolError, match=says):
        told_by_brokers("a", answers, 2)


def replica(number: int, address: str = "127.0.0.1:10911") -> ReplicaIdentity:
    return ReplicaIdentity(broker_id=number, broker_address=address)


@pytest.mark.parametrize(
    ("info", "next_id", "says"),
    [
        (ReplicasInfo(in_sync_replicas=[replica(0)]), 1, "told without an id, as before release 5.1.1"),
        (ReplicasInfo(in_sync_replicas=[]), 1, "no broker of a is told with its address"),
        (ReplicasInfo(in_sync_replicas=[replica(1, "")]), 2, "no broker of a is told with its address"),
        (
            ReplicasInfo(in_sync_replicas=[replica(1)], master_broker_id=2),
            3,
            "the master 2 of a is not in its SyncStateSet",
        ),
        (ReplicasInfo(in_sync_replicas=[replica(2)]), 2, "2 is to be granted next in a, and 2 was"),
    ],
    ids=["ids", "nobody", "addresses", "master", "next"],
)
def test_what_could_not_be_gone_on_with_is_refused_by_name(
    info: ReplicasInfo, next_id: int, says: str
) -> None:
    with pytest.raises(RemoteProtocolError, match=says):
        told_of("a", "c", info, next_id)
