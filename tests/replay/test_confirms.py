"""Which reports of a replica count for what its master confirms."""

from __future__ import annotations

from typing import Any

from replispec.replay.events.kinds import of_kind
from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.confirms import confirms
from replispec.runtime.primitives.unknown import UNKNOWN
from replispec.wire.rocketmq.ha import HaEpochEntry, HaHandshakeAnswer, HaHandshakeId, HaTransferHeader
from tests.replay.expectations import CONFIRM_HOLDS
from tests.replay.pcap_writer import Packet, pcap
from tests.replay.scenarios import two_brokers
from tests.replay.test_order import judged
from tests.replay.world import World

ASKED = "new master<->controller"
OLD, NEW, OTHER = "replica<->old master", "replica<->new master", "other replica<->new master"


def row(order: int, kind: ObservationKind, connection: str, **values: Any) -> Observation:
    return of_kind(kind, "capture", order, order, connection, 0, order, 0, group="set", **values)


def told(orders: range, *members: str) -> list[Observation]:
    """The master, which asked for this set, is told so often that it is in force."""
    return [
        row(order, ObservationKind.FACT, ASKED, master="3", master_epoch=2, members=members, requester="3")
        for order in orders
    ]


def test_what_a_replica_told_a_master_that_it_has_left_says_nothing_to_the_next_one() -> None:
    """After a partition the old connection delivers late what was sent on it long ago."""
    rows = [
        row(1, ObservationKind.HANDSHAKE, OLD, broker_id=2),
        row(2, ObservationKind.FACT, "controller", master="3", master_epoch=2, members=["2", "3"]),
        row(3, ObservationKind.HANDSHAKE, NEW, broker_id=2),
        row(4, ObservationKind.REPORT, NEW, max_offset=900),
        row(5, ObservationKind.REPORT, OLD, max_offset=100),
        row(6, ObservationKind.BATCH, NEW, epoch=2, offset=900, confirm_offset=900),
        row(7, ObservationKind.REPORT, NEW, max_offset=950),
        row(8, ObservationKind.BATCH, NEW, epoch=2, offset=950, confirm_offset=950),
    ]
    assert [event.covered for event in confirms(rows, all_ack=True)] == [900, 950]


def test_a_report_on_another_connection_is_in_no_order_with_what_is_confirmed() -> None:
    """Two members; the header to the first one is captured before the second one's report."""
    rows = [
        row(1, ObservationKind.HANDSHAKE, NEW, broker_id=2),
        row(2, ObservationKind.HANDSHAKE, OTHER, broker_id=1),
        *told(range(3, 6), "1", "2", "3"),
        row(4, ObservationKind.REPORT, NEW, max_offset=900),
        row(5, ObservationKind.REPORT, OTHER, max_offset=800),
        row(6, ObservationKind.BATCH, NEW, epoch=2, offset=900, confirm_offset=900),
        row(7, ObservationKind.REPORT, OTHER, max_offset=900),
        row(8, ObservationKind.BATCH, OTHER, epoch=2, offset=900, confirm_offset=900),
        row(9, ObservationKind.BATCH, OTHER, epoch=2, offset=900, confirm_offset=950),
    ]
    assert [event.covered for event in confirms(rows, all_ack=True)] == [UNKNOWN, 900, 900]


def test_a_master_is_not_accused_of_leaving_out_a_member_that_it_may_not_know_of_yet() -> None:
    """A controller answers it on one connection; what it sends on another one may have been made before."""
    joined = row(1, ObservationKind.HANDSHAKE, NEW, broker_id=2)
    beyond = [
        row(9, ObservationKind.REPORT, NEW, max_offset=900),
        row(10, ObservationKind.BATCH, NEW, epoch=2, offset=900, confirm_offset=950),
    ]
    for times in range(1, 4):
        rows = [joined, *told(range(3, 3 + times), "2", "3"), *beyond]
        (event,) = confirms(rows, all_ack=True)
        assert [event.covered] == [900] if times == 3 else event.covered is UNKNOWN
    elsewhere = [
        row(order, ObservationKind.FACT, "2<->controller", master="3", master_epoch=2, members=["2", "3"])
        for order in range(3, 9)
    ]
    (event,) = confirms([joined, *elsewhere, *beyond], all_ack=True)
    assert event.covered is UNKNOWN


def connected_again(world: World, wait_s: float) -> None:
    """Broker 2 comes back on a new connection, and reports there only after a while."""
    replica, master = world.brokers[2], world.brokers[1]
    assert replica.replication is not None
    world.traffic.close(replica.replication)
    replica.replication = world.traffic.connect(replica.host, master.replication_endpoint)
    world._replica_says(replica, HaHandshakeId(False, False, 2).encode())
    answer = HaHandshakeAnswer(master.end, 1, [HaEpochEntry(1, 0)])
    world._master_says(replica, answer.encode())
    world.traffic.wait(wait_s)


def fallen(by: int = 0, *, says_more: bool = False) -> str:
    """The verdict where a master takes back what it confirmed, as `falling` has it."""
    found = judged(pcap(falling(by, says_more=says_more)))
    return next(each.verdict.value for each in found.findings if each.invariant == CONFIRM_HOLDS)


def falling(by: int = 0, *, says_more: bool = False, around: tuple[int, ...] = ()) -> list[Packet]:
    """A master takes back what it confirmed, on the connection of broker 3, to so much less than broker 2
    holds, which is connected again.

    `says_more`: broker 3 is told twice more, without bytes, that there is nothing behind what it has.
    `around`: what broker 2 reports last on each connection, and first on the second one.
    """
    world = two_brokers(World(patient=True))
    world.come_up(3)
    world.announce(3)
    world.follow(3)
    world.replicate(3)
    world.alter((1, 2, 3))
    world.send(1)
    world.replicate(2)
    world.replicate(3)
    held = world.brokers[2].end
    world.send(3)
    world.replicate(3)
    world.traffic.wait(30)
    for reported in around:
        world.report(2, reported)
    connected_again(world, 8)
    for reported in around:
        world.report(2, reported)
    other = world.brokers[3]
    beyond = other.end + 1 if says_more else world.brokers[1].end
    for confirmed in (beyond, held - by, *[held - by] * says_more):
        world._master_says(other, HaTransferHeader(other.end, 1, 0, confirmed).encode())
        world.report(2)
    for reported in around:
        world.report(2, reported)
    return world.traffic.packets()


def test_a_member_that_reports_late_on_its_new_connection_may_take_back_what_was_confirmed() -> None:
    assert fallen() == "unknown"


def test_what_no_replica_reported_explains_no_fall_however_near_a_new_connection_is() -> None:
    assert fallen(by=1) == "violated"


def test_what_was_confirmed_beyond_the_log_is_a_fault_whatever_explains_the_fall() -> None:
    assert fallen(says_more=True) == "violated"
