"""Captures with a known fault each, and what a replay must find in them: exactly that.

Each function returns a `Scenario`: the packets of a whole capture, seen from the first SYN on, and the
verdict and number of evaluations of every invariant. What a fault breaks besides is expected with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from replispec.wire.rocketmq.codes import RemotingFlag, ResponseCode, SerializeType
from replispec.wire.rocketmq.controller import GetReplicaInfoRequest
from tests.replay.expectations import (
    ACK_WITHIN_SENT,
    BATCH_IN_EPOCH,
    BROKER_SET,
    CONFIRM_COVERS,
    CONFIRMED_SURVIVE,
    EPOCHS_GROW,
    GRANTED_ONCE,
    HEARTBEATS,
    LEARNER,
    LEARNER_OUTSIDE,
    OFFSET_CHAIN,
    ONE_MASTER,
    ONLY_MASTER,
    PAIRING,
    REPLICA_MACHINE,
    SEND_SURVIVES,
    SET_BY_EPOCH,
    Scenario,
)
from tests.replay.world import OTHER_CONTROLLER, World

StartSeen = Literal["handshake", "first write", "epoch query", "nowhere"]


def two_brokers(
    world: World | None = None,
    *,
    messages: int = 10,
    serialize_type: int = SerializeType.JSON,
    notified_first: bool = False,
) -> World:
    """Broker 1 is master of epoch 1, broker 2 has all its messages and is in the SyncStateSet."""
    world = world or World(serialize_type=serialize_type)
    world.come_up(1)
    world.elect(1, notified_first=notified_first)
    if not notified_first:
        world.notify(1)
    world.announce(1)
    world.come_up(2)
    world.announce(2)
    world.follow(2)
    world.heartbeat(2)
    world.alter((1, 2))
    world.send(messages)
    world.replicate(2)
    world.heartbeat(2)
    world.report(2)
    for number in (1, 2):
        world.ask(number)
    world.query()
    return world


def failed_over(world: World) -> World:
    """The second broker takes over, and the first one comes back as its replica."""
    world.die(1)
    world.take_over(2)
    world.announce(2)
    world.come_back(1)
    world.announce(1)
    world.follow(1)
    return world


def nothing_wrong(*, serialize_type: int = SerializeType.JSON, notified_first: bool = False) -> Scenario:
    """Two brokers, some messages, a fail-over after which the old master returns: nothing is lost."""
    world = two_brokers(serialize_type=serialize_type, notified_first=notified_first)
    world.die(1)
    world.take_over(2)
    world.announce(2)
    world.send(5)
    world.come_back(1)
    world.announce(1)
    world.follow(1)
    world.replicate(1)
    world.alter((1, 2))
    world.ask(1)
    world.query()
    return world.scenario()


def lost_messages(lost: int, *, kept: int = 10, start_seen: StartSeen = "handshake") -> Scenario:
    """A fail-over after which the last `lost` acknowledged messages of the old master are gone.

    `start_seen`: what tells where the new epoch begins; when nothing does, the losses are unknown.
    """
    world = two_brokers(messages=kept)
    world.send(lost)
    world.send_in_vain()
    world.die(1)
    world.take_over(2)
    world.announce(2)
    if start_seen == "first write":
        world.send(3)
        world.ledger.expect(CONFIRMED_SURVIVE, "unknown")
    if start_seen == "epoch query":
        world.query_epochs(2)
    if start_seen == "handshake":
        world.send(3)
        world.come_back(1)
        world.announce(1)
        world.follow(1)
        world.replicate(1)
    if start_seen == "nowhere":
        world.ledger.expect(SEND_SURVIVES, "unknown")
    return world.scenario()


def lost_batch(messages: int) -> Scenario:
    """The lost messages were sent in one request; each of them counts."""
    world = two_brokers()
    world.send_batch(messages)
    world.die(1)
    world.take_over(2)
    world.announce(2)
    world.query_epochs(2)
    world.send_batch(2)
    return world.scenario()


def two_groups() -> Scenario:
    """Two broker groups of one controller. Only the second one has a fail-over, and loses messages."""
    quiet = two_brokers()
    other = two_brokers(World(name="broker-b", subnet=2, traffic=quiet.traffic), messages=4)
    quiet.send(20)
    other.send(3)
    other.die(1)
    other.take_over(2)
    other.announce(2)
    other.query_epochs(2)
    other.send(1)
    quiet.replicate(2)
    quiet.ledger.add(other.ledger)
    return quiet.scenario()


def half_message_cut_off() -> Scenario:
    """The last batch ends within a message. The new master's epoch begins where that message began.

    The start of the later epoch lies inside a batch of the earlier one, which is no fault: the master
    that sent it could not know. Two messages are lost, the half one and one never sent.
    """
    world = two_brokers()
    offset = len(world.brokers[1].log)
    world.send(3)
    size = (len(world.brokers[1].log) - offset) // 3
    world.batch(2, offset, size + size // 2)
    world.report(2)
    world.die(1)
    world.take_over(2)
    world.announce(2)
    world.send(1)
    world.come_back(1)
    world.announce(1)
    world.follow(1)
    world.replicate(1)
    return world.scenario()


def deposed_master_acknowledges() -> Scenario:
    """A master that does not know of its successor acknowledges one message, then is refused and follows."""
    world = two_brokers()
    world.take_over(2)
    world.send_to(1, epoch=1)
    world.refuse((1,), by=1, epoch=1)
    world.announce(2)
    world.send(2)
    world.announce(1)
    world.follow(1)
    world.replicate(1)
    return world.scenario()


def two_epochs() -> World:
    """Broker 2 is master of epoch 2, has messages of both epochs, and broker 3 with an empty log comes up."""
    world = two_brokers()
    world.die(1)
    world.take_over(2)
    world.announce(2)
    world.send(10)
    world.come_up(3)
    world.announce(3)
    world.follow(3)
    return world


def batch_crosses_border(*, label: int = 1) -> Scenario:
    """A batch holds the end of epoch 1 and the start of epoch 2, labelled with either: violated."""
    world = two_epochs()
    master = world.brokers[2]
    epoch, start = master.epochs[label - 1]
    world.batch(3, 0, len(master.log), epoch=epoch, start=start)
    world.report(3)
    world.ledger.expect(BATCH_IN_EPOCH, "violated")
    return world.scenario()


def batch_has_next_label() -> Scenario:
    """The batch that ends epoch 1 is labelled with epoch 2, as Apache RocketMQ does: diverged."""
    world = two_epochs()
    epoch, border = world.brokers[2].epochs[1]
    world.batch(3, 0, border, epoch=epoch, start=border)
    world.report(3)
    world.replicate(3)
    world.ledger.expect(BATCH_IN_EPOCH, "diverged")
    return world.scenario()


def batches_respect_border() -> Scenario:
    """The same log in truthful batches: ok."""
    world = two_epochs()
    world.replicate(3)
    return world.scenario()


def two_masters_in_one_epoch() -> Scenario:
    """An admin is told of another master of epoch 1 than the brokers are."""
    world = two_brokers()
    world.query(master=2)
    world.ledger.expect(ONE_MASTER, "violated")
    world.ledger.expect(BROKER_SET, "violated")
    return world.scenario()


def epoch_falls() -> Scenario:
    """After the fail-over one broker is told, on the same connection, of the old epoch and its set."""
    world = two_brokers()
    world.take_over(2)
    world.announce(2)
    world.query_epochs(2)
    world.send(1)
    world.ask(2)
    world.ask(2, master=1, epoch=1, members=(1, 2), set_epoch=2)
    world.ledger.expect(EPOCHS_GROW, "violated")
    world.ledger.expect(BROKER_SET, "violated")
    return world.scenario()


def set_changes_without_epoch() -> Scenario:
    """An admin is told of another SyncStateSet than the brokers, under the same syncStateSetEpoch."""
    world = two_brokers()
    world.query(members=(1,))
    world.ledger.expect(SET_BY_EPOCH, "violated")
    world.ledger.expect(BROKER_SET, "violated")
    return world.scenario()


def broker_removed_from_the_set() -> Scenario:
    """An admin removes one broker, which changes the SyncStateSet under its epoch: diverged."""
    world = two_brokers()
    world.die(2)
    world.remove(2)
    world.ask(1)
    world.ledger.expect(SET_BY_EPOCH, "diverged")
    return world.scenario()


def two_lives() -> Scenario:
    """An admin removes the whole set. Its brokers register again and elect another master of epoch 1.

    What the second life says contradicts the first one in every respect, and no rule is broken.
    """
    world = two_brokers()
    world.start_another_life()
    world.come_up(1)
    world.come_up(2)
    world.elect(2)
    world.announce(2)
    world.announce(1)
    world.follow(1)
    world.send(3)
    world.replicate(1)
    world.alter((1, 2))
    world.ask(1)
    return world.scenario()


def forgotten_broker_set(*, again: bool) -> Scenario:
    """An admin removes the last in-sync replica, which makes the controller forget the whole set.

    With the next broker all epochs begin anew; that contradicts nothing. `again`: the controller then grants
    an id of which the owner is still alive.
    """
    world = World()
    world.come_up(1)
    world.elect(1)
    world.announce(1)
    world.come_up(2)
    world.come_up(3)
    world.die(1)
    first_life = world.ledger.group
    world.remove(1)
    world.come_up(4)
    world.elect(4)
    world.announce(4)
    world.send(2)
    if again:
        world.come_up(2)
        world.ledger.verdicts[first_life, GRANTED_ONCE] = "violated"
    return world.scenario()


def slave_alters_the_set() -> Scenario:
    """A broker that is not the master of its epoch has a change of the SyncStateSet accepted."""
    world = two_brokers()
    world.alter((2,), by=2)
    world.ledger.expect(ONLY_MASTER, "violated")
    world.ledger.expect(BROKER_SET, "violated")
    return world.scenario()


def learner_in_the_set() -> Scenario:
    """A broker whose handshake said asynchronous learner is taken into the SyncStateSet."""
    world = two_brokers()
    world.come_up(3, learner=True)
    world.announce(3)
    world.follow(3)
    world.replicate(3)
    world.alter((1, 2, 3))
    world.ask(1)
    world.ledger.expect(LEARNER_OUTSIDE, "violated")
    world.ledger.expect(LEARNER, "violated")
    return world.scenario()


def report_beyond_sent() -> Scenario:
    """A replica reports a log end that the master neither had at the handshake nor sent since."""
    world = two_brokers()
    world.report(2, len(world.brokers[1].log) + 1)
    world.ledger.expect(ACK_WITHIN_SENT, "violated")
    return world.scenario()


def broken_chain() -> Scenario:
    """A batch leaves out bytes of the log."""
    world = two_brokers()
    offset = len(world.brokers[1].log)
    world.send(2)
    world.batch(2, offset + 50, len(world.brokers[1].log) - offset - 50)
    world.ledger.expect(OFFSET_CHAIN, "violated")
    world.ledger.expect(REPLICA_MACHINE, "violated")
    return world.scenario()


def confirmed_by_all(*, patient: bool, has_reported: bool = True) -> Scenario:
    """Brokers are known to wait for the whole SyncStateSet: the master confirms what is, or more.

    That Apache counts a member only once it has reported something is known.
    """
    world = World(patient=patient)
    world.ledger.all_ack = True
    two_brokers(world)
    # Until it was told so often nobody knows whether the master counts its second member.
    world.ask(1)
    world.ask(1)
    if not patient:
        world.ledger.expect(CONFIRM_COVERS, "violated" if has_reported else "diverged")
    if not patient and has_reported:
        offset = len(world.brokers[1].log)
        world.send(2)
        world.batch(2, offset, len(world.brokers[1].log) - offset)
    return world.scenario()


def another_leader(*, reached: bool, beats: int = 10) -> Scenario:
    """Another controller becomes leader; the heartbeats of both brokers reach it, or of one alone.

    `beats`: how many the other one sends the old leader between two answers that name the new one.
    """
    world = two_brokers()
    links = [world.traffic.connect(world.brokers[number].host, OTHER_CONTROLLER) for number in (1, 2)]
    world.leader = OTHER_CONTROLLER
    for number, link in zip((1, 2), links, strict=True):
        world.ask_leader(world.link(world.brokers[number].to_controller), broker=True)
        world.ask_leader(link, broker=reached or number == 1)
    world.ledger.count(HEARTBEATS)
    world.heartbeat_controller(1, links[0])
    if reached:
        world.heartbeat_controller(2, links[1])
    else:
        world.ledger.expect(HEARTBEATS, "violated" if beats == 10 else "unknown")
        for _ in range(beats):
            world.heartbeat_controller(2)
    world.ask_leader(world.link(world.brokers[2].to_controller), broker=True)
    return world.scenario()


def answer_without_request() -> Scenario:
    """An answer to a number that nobody asked with."""
    world = two_brokers()
    link = world.link(world.brokers[1].to_controller)
    world.traffic.answer(link, 999_999)
    return _mispaired(world)


def answer_to_silence() -> Scenario:
    """The listening side of a new connection answers, though the other side never sent a byte."""
    world = two_brokers()
    link = world.traffic.connect("10.0.0.9", world.brokers[1].endpoint)
    world.traffic.answer(link, 7)
    return _mispaired(world)


def second_answer() -> Scenario:
    """One request is answered twice."""
    world = two_brokers()
    link = world.link(world.brokers[1].to_controller)
    request = GetReplicaInfoRequest("no-such-broker")
    opaque = world.traffic.request(link, request)
    for _ in range(2):
        world.traffic.answer(link, opaque, code=ResponseCode.CONTROLLER_BROKER_METADATA_NOT_EXIST)
    world.ledger.count(PAIRING)
    return _mispaired(world)


def answered_one_way() -> Scenario:
    """A one-way request is answered."""
    world = two_brokers()
    link = world.link(world.brokers[1].to_controller)
    opaque = world.traffic.request(link, GetReplicaInfoRequest("no-such-broker"), flag=RemotingFlag.ONEWAY)
    world.traffic.answer(link, opaque, code=ResponseCode.CONTROLLER_BROKER_METADATA_NOT_EXIST)
    return _mispaired(world)


def _mispaired(world: World) -> Scenario:
    world.ledger.count(PAIRING)
    world.ledger.expect(PAIRING, "violated")
    return world.scenario()


FAULTS: dict[str, Callable[[], Scenario]] = {
    "nothing wrong": nothing_wrong,
    "nothing wrong, binary headers": lambda: nothing_wrong(serialize_type=SerializeType.ROCKETMQ),
    "nothing wrong, notified before the answer": lambda: nothing_wrong(notified_first=True),
    "one lost message": lambda: lost_messages(1),
    "seventeen lost messages": lambda: lost_messages(17),
    "lost, seen by the first write": lambda: lost_messages(5, start_seen="first write"),
    "lost, seen by an epoch query": lambda: lost_messages(5, start_seen="epoch query"),
    "perhaps lost, start not seen": lambda: lost_messages(5, start_seen="nowhere"),
    "lost batch": lambda: lost_batch(6),
    "two groups": two_groups,
    "half message cut off": half_message_cut_off,
    "deposed master acknowledges": deposed_master_acknowledges,
    "batch crosses border, first label": batch_crosses_border,
    "batch crosses border, second label": lambda: batch_crosses_border(label=2),
    "batch has the next label": batch_has_next_label,
    "batches respect the border": batches_respect_border,
    "two masters in one epoch": two_masters_in_one_epoch,
    "epoch falls": epoch_falls,
    "set changes without epoch": set_changes_without_epoch,
    "broker removed from the set": broker_removed_from_the_set,
    "two lives": two_lives,
    "forgotten broker set": lambda: forgotten_broker_set(again=False),
    "forgotten broker set, id granted again": lambda: forgotten_broker_set(again=True),
    "slave alters the set": slave_alters_the_set,
    "learner in the set": learner_in_the_set,
    "report beyond sent": report_beyond_sent,
    "broken chain": broken_chain,
    "confirmed by all": lambda: confirmed_by_all(patient=True),
    "confirmed too early": lambda: confirmed_by_all(patient=False),
    "confirmed over a member that has nothing": lambda: confirmed_by_all(patient=False, has_reported=False),
    "another leader": lambda: another_leader(reached=True),
    "another leader, not reached": lambda: another_leader(reached=False),
    "another leader, perhaps not reached": lambda: another_leader(reached=False, beats=9),
    "answer without request": answer_without_request,
    "answer to silence": answer_to_silence,
    "second answer": second_answer,
    "answered one-way": answered_one_way,
}
