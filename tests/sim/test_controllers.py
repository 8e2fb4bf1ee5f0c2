"""A group of controllers: one leads and alone answers, what it said survives it, and strangers are nobody."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import pytest

from replispec.controller.consensus.raft import number_of
from replispec.runtime.primitives.parameters import ConfigurationError
from replispec.runtime.rocketmq.framing import Command, decode_command
from replispec.runtime.sim import Disk, Left, Rng, SimulatedStorage, World
from replispec.runtime.world import (
    Closed,
    Connected,
    Effect,
    Event,
    Member,
    Outbox,
    Received,
    Send,
    Started,
)
from replispec.wire.raft.codes import RequestCode as MemberCode
from replispec.wire.raft.member import RaftVoteRequest
from replispec.wire.rocketmq.codes import RemotingFlag, RequestCode, ResponseCode
from replispec.wire.rocketmq.controller import (
    ApplyBrokerIdRequest,
    BrokerNames,
    BrokerReplicasInfo,
    GetMetadataRequest,
    GetMetadataResponse,
    GetReplicaInfoRequest,
    GetReplicaInfoResponse,
    GetSyncStateDataRequest,
    ReplicasInfo,
)
from replispec.wire.rocketmq.remoting import RemotingHeader
from tests.sim.asker import Asker, Question
from tests.sim.controller_script import CLUSTER, IDS, NAME, address, heartbeat, question, script
from tests.sim.controllers import Controllers, asking_the_group, hosts, make, peers, properties

HEARTBEATS = [heartbeat(each) for each in IDS]
STEP = 1 if os.environ.get("REPLISPEC_CRASHES") == "all" else 4
"""Of all changes of a disk, every so many one is one that a crash interrupts."""
METADATA = question(RequestCode.CONTROLLER_GET_METADATA_INFO, GetMetadataRequest())
INFO = question(RequestCode.CONTROLLER_GET_REPLICA_INFO, GetReplicaInfoRequest(NAME))
SETS = question(
    RequestCode.CONTROLLER_GET_SYNC_STATE_DATA, GetSyncStateDataRequest(), BrokerNames(names=[NAME]).encode()
)
CONFIGURATION = Question(RequestCode.GET_CONTROLLER_CONFIG, {})


def application(broker: int) -> Question:
    """1013: something that has to be remembered."""
    code = f"{address(broker)};{broker}"
    return question(RequestCode.CONTROLLER_APPLY_BROKER_ID, ApplyBrokerIdRequest(CLUSTER, NAME, broker, code))


def served(group: Controllers) -> ReplicasInfo | None:
    """Ask the whole script of whoever leads; what is on record in the end."""
    asker = asking_the_group(group, script(), HEARTBEATS)
    assert group.world.run_until(lambda: asker.is_done, at_most_ms=60_000), len(asker.answers)
    table = BrokerReplicasInfo.decode(asker.answers[-1].body).replicas_info_table or {}
    return table.get(NAME)


def leader_of(answer: Command) -> tuple[str | None, str | None, bool | None]:
    """Id and address of whom a controller takes for the leader, and whether it is that itself."""
    said = GetMetadataResponse.from_ext_fields(answer.header.ext_fields or {})
    return said.controller_leader_id, said.controller_leader_address, said.is_leader


@pytest.mark.parametrize("size", [3, 5])
def test_one_of_a_group_is_elected_and_all_name_it(size: int) -> None:
    group = Controllers(1, size).start()
    leader = group.leader()
    group.world.run_for(1_000)
    known = f"n{leader[-1]}", f"{group.hosts[leader]}:9878"
    said = [leader_of(group.ask(name, METADATA)[0]) for name in group.hosts]
    assert said == [(*known, name == leader) for name in group.hosts]
    (answer,) = group.ask(leader, METADATA)
    peers_named = GetMetadataResponse.from_ext_fields(answer.header.ext_fields or {}).peers
    assert peers_named == peers(size).replace("-", ":") + ";"


def test_a_follower_refuses_what_the_leader_alone_answers_and_takes_heartbeats() -> None:
    group = Controllers(2).start()
    follower = group.follower()
    of_sets = [each for each in script() if each.code != RequestCode.BROKER_HEARTBEAT]
    codes = group.codes(follower, *of_sets, INFO, SETS)
    assert set(codes) == {ResponseCode.CONTROLLER_NOT_LEADER}
    assert {each.code for each in (*of_sets, INFO)} == {1001, 1002, 1003, 1004, 1006, 1011, 1012, 1013}
    assert set(group.codes(follower, *HEARTBEATS, METADATA, CONFIGURATION)) == {ResponseCode.SUCCESS}
    (refusal,) = group.ask(follower, INFO)
    assert refusal.header.remark == "The controller is not in leader state"


def test_what_the_leader_said_its_successor_knows() -> None:
    group = Controllers(3).start()
    said = served(group)
    first = group.leader()
    group.world.kill(first, power=True)
    second = group.leader()
    assert second != first
    (answer,) = group.ask(second, SETS)
    assert (BrokerReplicasInfo.decode(answer.body).replicas_info_table or {}).get(NAME) is not None
    assert said is not None
    info = GetReplicaInfoResponse.from_ext_fields(group.ask(second, INFO)[0].header.ext_fields or {})
    assert (info.master_broker_id, info.master_epoch) == (said.master_broker_id, said.master_epoch) == (3, 2)
    group.world.start(first)
    group.world.run_for(3_000)
    assert group.record(first) == group.record(second)


def test_a_leader_that_is_asked_to_end_hands_over_at_once() -> None:
    group = Controllers(10).start()
    served(group)
    first = group.leader()
    group.world.run_for(200)
    group.world.stop(first)
    group.world.run_for(200)
    assert len(group.leaders()) == 1
    assert group.leaders() != [first]


@pytest.mark.parametrize("seed", range(1, 7))
def test_a_member_that_answered_waits_for_no_answer_to_that(seed: int) -> None:
    """Followers have nothing to say to each other once one of them has voted for the other in vain."""
    group = Controllers(seed, 5).start()
    for _ in range(3):
        group.world.kill(group.leader())
        group.leader()
        for name in set(group.hosts) - set(group.living()):
            group.world.start(name)
        group.world.run_for(5_000)
    silent = [each for each in group.noted("member not reached") if each[1]["reason"] == "it does not answer"]
    assert not silent


def test_a_leader_that_is_cut_off_says_nothing_that_the_group_does_not() -> None:
    """It is asked all the while, also what it knows: its successor may know better."""
    group = Controllers(4).start()
    served(group)
    old = group.leader()
    others = [name for name in group.hosts if name != old]
    for other in others:
        group.world.network.block(old, other)
        group.world.network.block(other, old)
    for _ in range(40):
        asked = [INFO, SETS, application(4), METADATA]
        assert set(group.codes(old, *asked)[:3]) <= {ResponseCode.CONTROLLER_NOT_LEADER}
    assert leader_of(group.ask(old, METADATA)[0]) == (None, None, False)
    new = group.leader(but=[old])
    group.world.network.heal()
    group.world.run_for(4_000)
    assert group.leaders() == [new]
    assert group.record(old) == group.record(new)


def test_a_leader_that_hangs_and_wakes_harms_nobody() -> None:
    group = Controllers(5).start()
    served(group)
    old = group.leader()
    group.world.pause(old)
    new = group.leader(but=[old])
    known = group.record(new)
    group.world.run_for(20_000)
    group.world.go_on(old)
    group.world.run_for(5_000)
    assert group.leaders() == [new]
    masters = [values for _, values in group.noted("master elected")]
    assert group.record(old) == group.record(new) == known
    assert len({values["master_epoch"] for values in masters}) == len(masters)


def test_a_leader_that_wakes_to_a_question_refuses_it() -> None:
    """The first that it hears may be a question, at a time at which it ceases to lead."""
    group = Controllers(11).start()
    leader = group.leader()
    group.codes(leader, METADATA)
    node = group.node(leader)
    core = vars(vars(node._log)["_consensus"])["_core"]
    for other in set(group.hosts) - {leader}:
        group.world.network.block(other, leader)
    # It has looked once, and nobody was heard since.
    assert group.world.run_until(lambda: len(core.variables.heard) == 1, at_most_ms=2_000, step_ms=10)
    assert node._leads
    header = RemotingHeader(code=INFO.code, opaque=7, flag=0, ext_fields=dict(INFO.ext_fields))
    woken_ms = (node.deadline_ms() or 0) + 3_000
    effects = node.receive(Received(max(node._open), Command(header).encode(), woken_ms))
    sent = [bytes(each.data) for each in effects if isinstance(each, Send)]
    answers = [each for each in map(decode_command, sent) if each.is_answer]
    assert [each.header.code for each in answers] == [ResponseCode.CONTROLLER_NOT_LEADER]


def test_a_master_that_is_gone_with_the_leader_is_replaced_as_soon_as_another_leads() -> None:
    """Whoever follows hears connections end, too, and need not listen again."""
    overrides = {name: {"electedListeningPeriod": 60_000} for name in hosts()}
    group = Controllers(6, overrides=overrides).start()
    hears = [f"{host}:9878" for host in group.hosts.values()]
    lives = [group.add(Asker(at, [heartbeat(each)])) for each in IDS for at in hears]
    asker = asking_the_group(group, script()[:14], [])
    assert group.world.run_until(lambda: asker.is_done, at_most_ms=20_000)
    assert all(each.is_done for each in lives)
    group.world.kill(group.leader())
    for number, _ in enumerate(group.hosts, 1):
        group.world.kill(f"asker-{number}")
    group.leader()
    group.world.run_for(3_000)
    assert [values["master"] for _, values in group.noted("master elected")] == [1, 2]


def test_a_controller_that_is_just_elected_takes_nobody_for_dead_that_it_did_not_have_time_to_hear() -> None:
    overrides = {name: {"electedListeningPeriod": 8_000} for name in hosts()}
    group = Controllers(6, overrides=overrides).start()
    asker = asking_the_group(group, script()[:14], HEARTBEATS)
    assert group.world.run_until(lambda: asker.is_done, at_most_ms=20_000)
    old = group.leader()
    group.world.kill(old)
    # Whoever spoke for the brokers is gone before anybody leads who could take them for dead.
    group.world.kill("asker-1")
    new = group.leader()
    assert set(group.codes(new, heartbeat(2))) == {ResponseCode.SUCCESS}
    group.world.run_for(7_500)
    assert [values["master"] for _, values in group.noted("master elected")] == [1]
    group.world.run_for(1_500)
    assert [values["master"] for _, values in group.noted("master elected")] == [1, 2]


# What a disk does


def crashed(number: int, left: Left, victim: str) -> tuple[ReplicasInfo | None, Controllers]:
    """One of the group ends inside a change of its disk and is started again soon."""
    group = Controllers(7).start()
    process = group.world.processes[victim]
    process.disk.crash_at(number, left)

    def look() -> None:
        if not process.is_alive:
            group.world.start(victim)
        group.world.after(300_000, look)

    group.world.after(300_000, look)
    return served(group), group


def changes() -> Iterator[tuple[str, int]]:
    group = Controllers(7).start()
    served(group)
    for name in (group.leader(), group.follower()):
        count = len(group.world.processes[name].disk.changes)
        assert count > 5
        yield from ((name, number) for number in range(1, count + 1, STEP))


@pytest.mark.parametrize(("victim", "number"), list(changes()))
def test_a_crash_inside_a_change_of_a_member_costs_nothing_that_was_said(victim: str, number: int) -> None:
    for left in (Left.NOTHING, Left.ALL):
        said, group = crashed(number, left, victim)
        assert said is not None
        assert (said.master_broker_id, said.master_epoch, said.sync_state_set_epoch) == (3, 2, 5)
        group.world.run_for(3_000)
        assert group.records() == 1


def test_a_leader_without_room_leads_no_more_and_says_nothing_that_is_not_so() -> None:
    group = Controllers(8).start()
    served(group)
    old = group.leader()
    disk = group.world.processes[old].disk
    disk.room_bytes = 0
    codes = group.codes(old, application(4))
    assert set(codes) <= {ResponseCode.CONTROLLER_NOT_LEADER, ResponseCode.SYSTEM_ERROR}
    new = group.leader(but=[old])
    assert [name for name, _ in group.noted("no room for the log: changes are refused")][:1] == [old]
    assert group.codes(new, INFO) == [ResponseCode.SUCCESS]
    disk.room_bytes = None
    group.world.run_for(3_000)
    assert group.record(old) == group.record(new)


# Who is nobody


@dataclass
class Stranger:
    """Sends one message of a member to a controller, and hears whether it is hung up on."""

    address: str
    header: RaftVoteRequest
    flag: int = RemotingFlag.ONEWAY
    is_hung_up_on: bool = False
    _outbox: Outbox = field(default_factory=Outbox)

    @property
    def listeners(self) -> Mapping[str, str]:
        """None."""
        return {}

    def deadline_ms(self) -> int | None:
        """It waits for nothing."""
        return None

    def receive(self, event: Event) -> Sequence[Effect]:
        """Take one event."""
        if isinstance(event, Started):
            self._outbox.dial(self.address)
        elif isinstance(event, Connected):
            header = RemotingHeader(
                code=MemberCode.VOTE, opaque=1, flag=self.flag, ext_fields=self.header.to_ext_fields()
            )
            self._outbox.send(event.connection, Command(header).encode())
        elif isinstance(event, Closed):
            self.is_hung_up_on = True
        return self._outbox.take()


def vote(of: str = "simulation/n1,n2,n3", member: str = "n2", version: int = 1) -> RaftVoteRequest:
    """A message that would depose any leader."""
    return RaftVoteRequest(version, of, number_of(member), 99, 999, 99, False, True)


@pytest.mark.parametrize(
    ("header", "host", "flag", "says"),
    [
        (vote(), "127.0.0.77", RemotingFlag.ONEWAY, "it speaks for member 'n2', which is at 127.0.0.2:9878"),
        (vote(member="n9"), "127.0.0.2", RemotingFlag.ONEWAY, "is the number of no other member"),
        (vote(member="n1"), "127.0.0.2", RemotingFlag.ONEWAY, "is the number of no other member"),
        (vote(of="another/n1,n2,n3"), "127.0.0.2", RemotingFlag.ONEWAY, "no message of a member of group"),
        (vote(of="simulation/n1,n2,n4"), "127.0.0.2", RemotingFlag.ONEWAY, "no message of a member of group"),
        (vote(version=2), "127.0.0.2", RemotingFlag.ONEWAY, "no message of a member of group"),
        (vote(), "127.0.0.2", RemotingFlag.REQUEST, "wants an answer"),
    ],
    ids=["host", "number", "own", "group", "list", "version", "request"],
)
def test_whoever_is_no_member_of_this_group_is_hung_up_on(
    header: RaftVoteRequest, host: str, flag: int, says: str
) -> None:
    group = Controllers(9).start()
    leader = group.leader()
    stranger = Stranger("127.0.0.1:9878", header, flag)
    group.world.add("stranger", host, lambda _: [Member("stranger", stranger)])
    group.world.start("stranger")
    assert group.world.run_until(lambda: stranger.is_hung_up_on, at_most_ms=2_000)
    group.world.run_for(3_000)
    ((name, said),) = group.noted("message refused")
    assert (name, says in said["reason"], said["peer"].rpartition(":")[0]) == ("controller-1", True, host)
    assert group.leaders() == [leader]
    assert group.term(leader) == 1


def test_the_real_member_would_have_deposed_it() -> None:
    """What the test before would show if the stranger were taken for a member."""
    group = Controllers(9).start()
    leader = group.leader()
    stranger = Stranger("127.0.0.1:9878", vote())
    group.world.add("stranger", "127.0.0.2", lambda _: [Member("stranger", stranger)])
    group.world.start("stranger")
    group.world.run_for(3_000)
    assert not stranger.is_hung_up_on
    assert group.term(leader) >= 99


# Stores and lists that do not fit


def halted(of: Mapping[str, object], disk: Disk) -> str:
    """Why a controller ends that is started so on this disk; empty when it does not."""
    world = World(1)
    process = world.add("controller-1", "127.0.0.1", partial(make, of, Rng(1)))
    process.disk = disk
    world.start("controller-1")
    world.run_for(3_000)
    return process.failure or ""


ALONE = properties("controller-1", 1)
NOBODY = {"controllerDLegerPeers": "", "listenPort": 9878, "bindAddress": "127.0.0.1"}


def lived_alone(snapshot: bool) -> Disk:
    world = World(1)
    process = world.add("controller-1", "127.0.0.1", partial(make, ALONE, Rng(1)))
    world.start("controller-1")
    world.run_for(1_000)
    if snapshot:
        kept = SimulatedStorage(process.disk).journal("controller/controller.log.sqlite")
        kept.replace(1, b"whatever")
    world.kill("controller-1")
    return process.disk


@pytest.mark.parametrize("snapshot", [False, True])
def test_a_store_of_a_controller_that_was_alone_is_refused_by_name(snapshot: bool) -> None:
    disk = lived_alone(snapshot)
    assert "the log is that of a controller that was alone" in halted(properties("controller-1"), disk)


def lived_in_a_group() -> Disk:
    group = Controllers(1).start()
    group.leader()
    group.world.kill("controller-1")
    return group.world.processes["controller-1"].disk


@pytest.mark.parametrize(
    ("of", "says"),
    [
        (NOBODY, "a controller that is alone cannot go on with it"),
        (ALONE, "says where n2, n3 of the group 'simulation/n1,n2,n3' is reached"),
        ({"controllerDLegerGroup": "another"}, "this is member 'n1' of a group 'another'"),
        (
            {"controllerDLegerSelfId": "n2", "controllerDLegerPeers": peers().replace(".2:", ".9:")},
            "and this is member 'n2'",
        ),
    ],
    ids=["nobody", "alone", "group", "id"],
)
def test_a_store_of_another_member_is_refused_by_name(of: Mapping[str, object], says: str) -> None:
    assert says in halted(properties("controller-1") | dict(of), lived_in_a_group())


def test_the_own_store_is_not() -> None:
    assert halted(properties("controller-1"), lived_in_a_group()) == ""
    assert halted(ALONE, lived_alone(snapshot=False)) == ""


@pytest.mark.parametrize(
    ("listed", "says"),
    [
        ("n1-127.0.0.1:9878;n2-127.0.0.2:9878", "an odd number of members, 5 at most"),
        ("n1-127.0.0.1:9878;n2-127.0.0.1:9878;n3-127.0.0.3:9878", "HOST:PORT of its own"),
        ("n2-127.0.0.1:9878;n3-127.0.0.1:9878;n4-127.0.0.3:9878", "one of n2, n3, n4"),
    ],
    ids=["two", "places", "own"],
)
def test_lists_that_make_no_group_are_refused(listed: str, says: str) -> None:
    of = properties("controller-1") | {"controllerDLegerPeers": listed}
    with pytest.raises(ConfigurationError, match=says):
        make(of, Rng(1), SimulatedStorage(Disk(Rng(1))))
