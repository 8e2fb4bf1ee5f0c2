"""The acts of a world of logical queues; see `logical_acting`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from replispec.runtime.rocketmq.queues import Segment
from replispec.wire.rocketmq.codes import RequestCode
from tests.sim.logical_acting import FORGOTTEN_MS, RESTED_MS, SENDERS, ActingRun, NotKeptError
from tests.sim.logical_admins import LogicalAdministrators, LogicalWanted
from tests.sim.logical_judge import held_by, told_by
from tests.sim.logical_run import QUEUES_MAX
from tests.sim.queue_world import ADMINS, CONTROLLER, MEMBERS, NAME_SERVER, SECOND


def leaves(run: ActingRun) -> None:
    """A set is drained until it may stop, stops for good, and name servers begin empty."""
    if len(run.servers.sets) < 2:
        return
    name, grows = run._rng.one_of(run.servers.sets), 0
    index = run._at(name)
    how = run._rng.below(3)
    if how == 0 and run.total > 1:
        grows = run.total
        run._done(LogicalWanted(moves=((run.total - 1, name),)))
        run.total -= 1
        run._done(LogicalWanted(total=run.total))
    if how == 1:
        run._done(LogicalWanted(moves=((index, run._other(name)),)))
        run._expires(name, index)
        run._done(LogicalWanted(moves=((index, name),)))
        run._pass(1_000)
    run._group_stands_still()
    run._filled = name
    run._done(LogicalWanted(drains=name, leaves=True))
    run._filled = ""
    for member in MEMBERS[name]:
        run.world.kill(member)
    run.servers.away.add(name)
    run._rests(FORGOTTEN_MS)
    run._name_servers_begin_empty()
    run._told_again()
    run._group_goes_on()
    if grows:
        run.total = grows
        run._done(LogicalWanted(total=grows))


def is_lost(run: ActingRun) -> None:
    """One set is lost after the other, and passed over with -fd; then they come back, in some order."""
    count = min(len(run.servers.sets) - 1, run._rng.between(1, 2))
    if count < 1:
        return
    index = run._rng.below(run.total)
    lost: list[str] = []
    has_more = False
    for _ in range(count):
        name = run._tail(index).queue.broker_name
        if not lost and run._rng.happens(400):
            _sealed_only(run, index, run._other(name))
        ends = {each: run._tail(each) for each in range(run.total)}
        held_before = held_by(run.servers, name)
        for member in MEMBERS[name]:
            run.world.kill(member, power=run.settings.loses_power)
        run.servers.away.add(name)
        run.servers.passed.add(name)
        lost.append(name)
        # What is in older segments of it nobody says is gone; name servers that begin empty wait for it.
        has_more = has_more or any(
            each.segment != ends[each.index] for each in held_before if each.index in ends
        )
        run._pass(4_000)
        for each, segment in ends.items():
            if segment.queue.broker_name == name:
                _passed_over(run, each, segment)
        run._pass(1_500)
    if run._rng.happens(500) and not has_more:
        run._name_servers_begin_empty()
    lost = lost if run._rng.happens(600) else lost[::-1]
    with run._quiet():
        # Who comes back takes what is sent to it until it hears that it was passed over.
        for name in lost:
            run.servers.away.discard(name)
            run.servers.overtaken.add(name)
            for member in MEMBERS[name]:
                run.world.start(member)
            run._must(f"{name} does not serve again", lambda: run.servers.is_whole)
            run._done(LogicalWanted(settles=True))
            run.servers.overtaken.discard(name)
            run._pass(12_000)
            run._told_again()


def _sealed_only(run: ActingRun, index: int, target: str) -> None:
    """A migration that ends behind the seal."""
    assert isinstance(run.admins, LogicalAdministrators)
    run.admins.dies_behind = RequestCode.MIGRATE_TOPIC_LOGICAL_QUEUE_PREPARE
    run._tried(LogicalWanted(moves=((index, target),)), times=1)
    run.admins.dies_behind = None


def _passed_over(run: ActingRun, index: int, segment: Segment) -> None:
    name, queue_id = segment.queue
    ends = [
        at + 1
        for member in MEMBERS[name]
        for (_, queue, at) in run.servers.messages(member)
        if queue == queue_id
    ]
    behind = segment.logical_of(max([*ends, segment.physical_start])) + run._rng.between(1, 40)
    if segment.is_sealed and (index, segment) not in told_by(run.servers, NAME_SERVER, name):
        # Nobody but clients that were sent on, and this operator, knows that it ended.
        behind = segment.logical_end
    target = run._other(name)
    if run._tail(index).queue.broker_name != name:
        # What was asked by an administrator that ended arrived.
        return
    why = run._tried(LogicalWanted(moves=((index, target),), start=behind), times=1)
    if why and segment.is_sealed:
        run._done(LogicalWanted(moves=((index, target),), start=segment.logical_end))
        return
    if why:
        raise NotKeptError(f"{name}, which is lost, cannot be passed over at {behind}")
    if run.settings.races:
        # It is decided: whoever says another one is told so.
        run._tried(LogicalWanted(moves=((index, target),), start=behind + 5), times=1)


def is_not_heard(run: ActingRun) -> None:
    """One of two name servers does not hear a set: it is not passed over, and moves as any other."""
    name = run._rng.one_of(run.servers.sets)
    index = run._at(name)
    deaf = run._rng.one_of((NAME_SERVER, SECOND))
    run._apart(MEMBERS[name], [deaf])
    for member in MEMBERS[name]:
        run.world.network.reset(member, deaf)
    run._pass(3_000)
    if len(run.servers.sets) > 1:
        start = run._tail(index).logical_start + 100_000
        run._tried(LogicalWanted(moves=((index, run._other(name)),), start=start), times=1)
        tail = run._tail(index)
        if tail.logical_start == start:
            raise NotKeptError(f"{name} is there, and was passed over")
        run._done(LogicalWanted(moves=((index, run._other(name)),)))
    run._apart(MEMBERS[name], [deaf], again=True)
    run._pass(12_000)


def are_numbered(run: ActingRun) -> None:
    """Two administrators change the number at once, and do not live long; a queue moves meanwhile."""
    run.admins.is_careful = False
    for _ in range(40):
        for name in ADMINS:
            if not run.admins.is_busy(name):
                number = run._rng.between(1, QUEUES_MAX)
                run.total, run.most = number, max(run.most, number)
                moves = ((run._rng.below(number), run._rng.one_of(run.servers.sets)),)
                is_number = run._rng.happens(800)
                run.admins.begin(
                    name, LogicalWanted(total=number) if is_number else LogicalWanted(moves=moves)
                )
        run._pass(100)
        if run._rng.happens(200):
            run.admins.end_all()
    run.admins.end_all()
    run._pass(3_000)
    run.admins.is_careful = True
    run._done(LogicalWanted(finishes=True, total=run.total))


def moves_empty(run: ActingRun) -> None:
    """A queue moves to and fro without a message, then with some: no more message queues are made."""
    if len(run.servers.sets) < 2:
        return
    here = run._rng.one_of(run.servers.sets)
    there, index = run._other(here), run._at(here)
    made: list[int] = []
    with run._quiet():
        for name in (there, here) * run._rng.between(1, 2):
            run._done(LogicalWanted(moves=((index, name),)))
    for _ in range(3):
        for left, name in ((here, there), (there, here)):
            run._must("nothing is sent", partial(_has_messages, run, left, index))
            with run._quiet(SENDERS):
                run._done(LogicalWanted(moves=((index, name),)))
                run._expires(left, index)
        made.append(sum(run._known().part(each).writes for each in (here, there)))
    if made[2] > made[1]:
        raise NotKeptError(f"message queues grow while one logical queue goes to and fro: {made}")


def _has_messages(run: ActingRun, name: str, index: int) -> bool:
    written = [
        each for each in held_by(run.servers, name) if each.index == index and each.segment.is_writable
    ]
    found = run.servers.messages(run.servers.master(name))
    places = {(queue, at) for _, queue, at in found}
    return any((each.segment.queue.queue_id, each.segment.physical_start) in places for each in written)


def stands_still(run: ActingRun) -> None:
    """A group stands still while what keeps its place is deleted, and its message queue is taken again."""
    if len(run.servers.sets) < 2:
        return
    name = run._rng.one_of(run.servers.sets)
    index = run._at(name)
    run._group_stands_still()
    with run._quiet(SENDERS):
        run._done(LogicalWanted(moves=((index, run._other(name)),)))
    run._pass(1_500)
    run._expires(name, index)
    run._rests(RESTED_MS)
    others = [each for each in range(run.total) if each != index]
    if run._rng.happens(800):
        run._done(LogicalWanted(moves=tuple((each, run._other(name)) for each in others)))
        run._done(LogicalWanted(moves=tuple((each, name) for each in others)))
    run._group_goes_on()


def seals_alone(run: ActingRun) -> None:
    """A source seals a queue while its replica gets nothing, clients send, and it ends: the set has not."""
    for _ in range(3):
        name = run._rng.one_of(run.servers.sets)
        index = run._at(name)
        run._pass(500)
        master = run.servers.master(name)
        replicas = [each for each in MEMBERS[name] if each != master]
        run._apart([master], replicas)
        run.admins.begin(ADMINS[0], LogicalWanted(moves=((index, run._other(name)),)))
        run._pass(run._rng.between(300, 2_000))
        run.world.kill(master, power=run.settings.loses_power)
        run._apart([master], replicas, again=True)
        run._must(f"{name} has no master", partial(_is_led, run, name))
        run.world.start(master)
        run._all_well()


def _is_led(run: ActingRun, name: str) -> bool:
    return bool(run.servers.masters(name))


def says_late(run: ActingRun) -> None:
    """Who is no master any more, and does not know it, registers what it held: nobody takes it back."""
    name = run._rng.one_of(run.servers.sets)
    index = run._at(name)
    old = run.servers.master(name)
    (new,) = (each for each in MEMBERS[name] if each != old)
    run._apart([old], [new, CONTROLLER])
    if not run.world.run_until(lambda: new in run.servers.masters(name), at_most_ms=15_000):
        # It was not in the SyncStateSet any more when the controller heard the other one for the last time.
        run._apart([old], [new, CONTROLLER], again=True)
        return
    if len(run.servers.sets) > 1:
        run._tried(LogicalWanted(moves=((index, run._other(name)),)), times=10)
    for _ in range(150):
        held = {(each.index, each.segment) for each in held_by(run.servers, name, new)}
        was = [told_by(run.servers, each, name) == held for each in (NAME_SERVER, SECOND)]
        run._look()
        same = {(each.index, each.segment) for each in held_by(run.servers, name, new)} == held
        now = [told_by(run.servers, each, name) == held for each in (NAME_SERVER, SECOND)]
        if same and any(one and not two for one, two in zip(was, now, strict=True)):
            raise NotKeptError(f"a name server takes back what {new} said")
    run._apart([old], [new, CONTROLLER], again=True)


def knows_the_route_of_before(run: ActingRun) -> None:
    """A producer stands still while a queue leaves its message queue, and another one comes there."""
    if len(run.servers.sets) < 2 or run.total < 2:
        return
    name = run._rng.one_of(run.servers.sets)
    index = run._at(name)
    other = run._rng.one_of([each for each in range(run.total) if each != index])
    run._done(LogicalWanted(moves=((other, run._other(name)),)))
    run._pass(1_500)
    with run._quiet(SENDERS):
        run._filled = name
        run._pass(4_000)
        run._done(LogicalWanted(moves=((index, run._other(name)),)))
        run._expires(name, index)
        run._done(LogicalWanted(moves=((other, name),)))
    run._pass(1_500)


def hears_replicas_alone(run: ActingRun) -> None:
    """Name servers begin empty and hear replicas before any master: the plain route is told to nobody."""
    masters = [run.servers.master(name) for name in run.servers.sets]
    run._apart(masters, [NAME_SERVER, SECOND])
    run._name_servers_begin_empty()
    run._apart(masters, [NAME_SERVER, SECOND], again=True)
    run._told_again()


def rolls_its_log(run: ActingRun) -> None:
    """The log of a set loses the files in which its mapping was recorded, and all its members their power."""
    name = run._rng.one_of(run.servers.sets)
    index = run._at(name)
    run._filled = name
    run._pass(12_000)
    run._filled = ""
    run._done(LogicalWanted(moves=((index, name),)))
    for member in MEMBERS[name]:
        run.world.kill(member, power=run.settings.loses_power)
    for member in MEMBERS[name]:
        run.world.start(member)


ACTS: Final[Mapping[str, Callable[[ActingRun], None]]] = {
    "a set leaves": leaves,
    "sets are lost": is_lost,
    "a name server does not hear a set": is_not_heard,
    "the number is changed by several": are_numbered,
    "a queue moves without a message": moves_empty,
    "a group stands still": stands_still,
    "a seal is not kept": seals_alone,
    "a master of before registers": says_late,
    "a producer knows the route of before": knows_the_route_of_before,
    "a log rolls": rolls_its_log,
    "name servers hear replicas alone": hears_replicas_alone,
}


class ActsRun(ActingRun):
    """With all of them."""

    acts = ACTS
