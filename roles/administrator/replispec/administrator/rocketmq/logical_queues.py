"""Logical queues (RIP-21) made of message queues, enabled, made more and fewer, taken off a broker.

That a topic is one of logical queues is said last, to every broker that has it: from then on nobody is told
the plain route. Each step may be repeated, and a command that was cut off is finished by calling it again.

Source: apache/rocketmq rocketmq-all-5.0.0-PREVIEW, UpdateTopicLogicalQueueMappingCommand,
UpdateTopicLogicalQueueNumCommand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from replispec.administrator.rocketmq.logical_places import before_taken, carried_over
from replispec.administrator.rocketmq.logical_topics import LogicalPart, LogicalTopic, known
from replispec.administrator.rocketmq.plans import Asking, NotAsWantedError, NotGrantedError, Plan, granted
from replispec.administrator.rocketmq.topics import TopicWanted, updated_at
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.queues import (
    Enabled,
    HeardQueues,
    LogicalQueue,
    PhysicalQueue,
    Segment,
    Statement,
    lack_of,
)
from replispec.runtime.rocketmq.queues.forms import STATE_NAMES
from replispec.runtime.rocketmq.queues.telling import Interval, message_of_statement, with_gone
from replispec.wire.rocketmq.codes import LogicalQueueState as State
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.constants import LOGICAL_QUEUES_MAX, UNDECIDED
from replispec.wire.rocketmq.logical_queue import (
    CreateLogicalQueue,
    DeleteLogicalQueueMappingRequest,
    ReuseLogicalQueue,
    SealLogicalQueue,
    UpdateLogicalQueueMapping,
)

UPDATE = RequestCode.UPDATE_TOPIC_LOGICAL_QUEUE_MAPPING


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """One message queue of one broker, and the logical queue that it is to be; below 0: none any more."""

    address: str
    queue_id: int
    index: int


# ---- that a topic is one of logical queues -------------------------------------------------------


def lack(found: LogicalTopic, said: Enabled | None = None) -> str | None:
    """What is missing, so that clients cannot be told of its logical queues; None: nothing. `said`: of as
    many as brokers were told of; else of those that they have."""
    heard = HeardQueues(found.queues, said, found.gone)
    return lack_of(heard, {part.broker: part.writes for part in found.holders})


def enabled(
    found: LogicalTopic,
    now_ms: int,
    queues: int,
    total: int,
    gone: Mapping[int, Sequence[Interval]] | None = None,
) -> Plan[None]:
    """Every broker that has the topic is told how many logical queues it has; who knows it already is not.
    `gone`: what they are to say of offsets that no segment lists any more. Raises NotAsWantedError."""
    was = found.stated
    if was is not None and not gone and (was.enabled.queues, was.enabled.total) == (queues, total):
        said = Statement(was.enabled)
    else:
        epoch = rules.next_mapping_epoch(UNDECIDED if was is None else was.enabled.epoch, now_ms)
        said = Statement(
            Enabled(epoch, queues, total), {index: tuple(each) for index, each in (gone or {}).items()}
        )
    body = UpdateLogicalQueueMapping(message_of_statement(said), UNDECIDED, UNDECIDED, found.name).encode()
    behind = [each for each in found.holders if each.stated is None or each.stated.enabled != said.enabled]
    for reply in (yield [Asking(each.address, UPDATE, body=body) for each in behind]):
        granted(reply)


def restated(name_servers: Sequence[str], topic: str, now_ms: int) -> Plan[LogicalTopic]:
    """Brokers that have the topic since it was enabled are told, too; what they hold then."""
    found = yield from known(name_servers, topic)
    if found.stated is not None:
        yield from enabled(found, now_ms, found.stated.enabled.queues, found.stated.enabled.total)
    return found


# ---- message queues mapped -----------------------------------------------------------------------


def made(name_servers: Sequence[str], wanted: TopicWanted, cluster: str, now_ms: int) -> Plan[Sequence[str]]:
    """A topic is made in a cluster, and all its message queues are logical ones; at which brokers. Those that
    hold some of them already have it. Raises NotAsWantedError."""
    found = yield from known(name_servers, wanted.name)
    parts = found.of_cluster(cluster)
    _all_read(wanted.name, "a broker", wanted.reads, wanted.writes)
    if found.stated is None:
        yield from updated_at([each.address for each in parts if not each.queues], wanted)
    else:
        yield from _joined(found, parts, wanted.writes)
    yield from mapped(name_servers, wanted.name, cluster, now_ms)
    return [each.address for each in parts]


def _joined(found: LogicalTopic, parts: Sequence[LogicalPart], writes: int) -> Plan[None]:
    """Brokers that came since the topic was enabled get so many more logical queues of it: none is to have a
    plain queue, of which clients would not be told."""
    total = found.stated.enabled.total if found.stated is not None else 0
    _not_smaller(found)
    free = (index for index in count() if index not in found.queues)
    for part in parts:
        if part.stated is None and all(index >= total for index in part.queues):
            for _ in range(part.writes, writes):
                yield from _created(found, part, next(free))


def mapped(
    name_servers: Sequence[str], topic: str, wanted: QueuePlace | str, now_ms: int
) -> Plan[tuple[LogicalTopic, str | None]]:
    """One message queue is mapped, or unmapped, or every one of a cluster that is not mapped yet; once all
    are, the topic is enabled. What brokers hold then, and what is still missing. Raises NotAsWantedError."""
    found = yield from known(name_servers, topic)
    for part in found.holders:
        if not part.queues:
            _all_read(topic, part.broker, part.reads, part.writes)
    places = _places(found, wanted) if isinstance(wanted, str) else [_placed(found, wanted)]
    for each in places:
        body = UpdateLogicalQueueMapping(None, each.index, each.queue_id, topic).encode()
        (reply,) = yield [Asking(each.address, UPDATE, body=body)]
        granted(reply)
    found = yield from known(name_servers, topic)
    queues = found.checked()
    missing = lack(found)
    if missing is None:
        was = found.stated
        numbers = len(queues), len(queues)
        if was is not None and was.enabled.total >= len(queues):
            numbers = was.enabled.queues, was.enabled.total
        yield from enabled(found, now_ms, *numbers)
    return found, missing


def _all_read(topic: str, broker: str, reads: int, writes: int) -> None:
    """Logical queues are made of message queues that are written: what lies in others nobody would read, and
    how many are read nobody may change then. Raises NotAsWantedError."""
    if reads != writes:
        raise NotAsWantedError(
            f"of {topic} {broker} has {reads} message queues that are read and {writes} that are written:"
            " only where these are the same may they be logical ones (updateTopic -r -w)"
        )


def _places(found: LogicalTopic, cluster: str) -> Sequence[QueuePlace]:
    """Every message queue that is not mapped, brokers by address, to the lowest free indexes."""
    parts = found.of_cluster(cluster)
    if not any(each.has_topic for each in parts):
        raise NotAsWantedError(f"no broker of {cluster} has the topic {found.name}")
    taken = set(found.queues)
    _not_smaller(found)
    places: list[QueuePlace] = []
    for part in parts:
        for queue_id in part.unmapped:
            index = next(each for each in range(len(taken) + 1) if each not in taken)
            taken.add(index)
            places.append(QueuePlace(part.address, queue_id, index))
    if places and len(taken) > LOGICAL_QUEUES_MAX:
        raise NotAsWantedError(f"{len(taken)} logical queues: 1 to {LOGICAL_QUEUES_MAX} are possible")
    return places


def _placed(found: LogicalTopic, wanted: QueuePlace) -> QueuePlace:
    """That one, unless its index is another queue's."""
    part = found.at(wanted.address)
    if wanted.index < 0:
        return wanted
    for each in found.queues.get(wanted.index, LogicalQueue(wanted.index)).segments:
        if (each.queue.broker_name, each.queue.queue_id) != (part.broker, wanted.queue_id):
            raise NotAsWantedError(
                f"logical queue {wanted.index} is at {each.queue.broker_name}:"
                " migrateTopicLogicalQueue moves it"
            )
    _not_smaller(found)
    return wanted


def _not_smaller(found: LogicalTopic) -> None:
    was = found.stated
    if was is not None and was.enabled.queues < was.enabled.total:
        raise NotAsWantedError(
            f"the number of logical queues of {found.name} was made smaller: updateTopicLogicalQueueNum"
            " makes it greater"
        )


def unmapped(name_servers: Sequence[str], topic: str, where: str, *, is_cluster: bool) -> Plan[None]:
    """A broker, or each of a cluster, forgets that a topic is mapped, if it holds nothing of it. Raises
    NotAsWantedError."""
    found = yield from known(name_servers, topic)
    parts = found.of_cluster(where) if is_cluster else [found.at(where)]
    header = DeleteLogicalQueueMappingRequest(topic=topic)
    code = RequestCode.DELETE_TOPIC_LOGICAL_QUEUE_MAPPING
    for reply in (yield [Asking(each.address, code, header) for each in parts if each.has_topic]):
        granted(reply)


# ---- how many there are --------------------------------------------------------------------------


def numbered(
    name_servers: Sequence[str], topic: str, cluster: str, number: int, now_ms: int
) -> Plan[LogicalTopic]:
    """So many logical queues are written. Fewer: the last ones are sealed, and read till they expire. More:
    they are written again behind their ends, then new ones are made. Raises NotAsWantedError."""
    if not 0 < number <= LOGICAL_QUEUES_MAX:
        raise NotAsWantedError(f"{number} logical queues: 1 to {LOGICAL_QUEUES_MAX} are possible")
    found = yield from known(name_servers, topic)
    if found.stated is None:
        raise NotAsWantedError(f"logical queues of {topic} are not enabled: updateTopicLogicalQueueMapping")
    found.of_cluster(cluster)
    said = found.stated.enabled
    if found.fault is not None and (yield from _unmade(found, said.total)):
        found = yield from known(name_servers, topic)
    found.checked()
    if number < said.queues:
        # Said first: a queue that is to be written, and is sealed, would have clients refused.
        yield from enabled(found, now_ms, number, said.total)
    for index in range(number, len(found.queues)):
        yield from _sealed(found, index)
    for index in range(number):
        found = yield from known(name_servers, topic)
        if index not in found.queues:
            yield from _made(found, cluster, index)
        elif found.queue(index).writable is None:
            yield from _written_again(found, index)
    found = yield from known(name_servers, topic)
    missing = lack(found)
    found.checked()
    if missing is not None:
        raise NotAsWantedError(f"{number} logical queues of {topic} are not enabled: {missing}")
    total = max(number, found.stated.enabled.total if found.stated is not None else 0)
    yield from enabled(found, now_ms, number, total)
    found = yield from known(name_servers, topic)
    missing = lack(found, None if found.stated is None else found.stated.enabled)
    if missing is not None:
        raise NotAsWantedError(
            f"{number} logical queues of {topic} are written, and clients are refused: brokers were told of"
            f" {total}, and {missing}; -num {total} makes them"
        )
    return found


def _unmade(found: LogicalTopic, total: int) -> Plan[bool]:
    """Of a logical queue that nobody was told of yet, and that several administrators made at once at several
    brokers, one segment stays: the others, which never had a message, are sealed; whether there were any."""
    more = [
        (index, each)
        for index, queue in found.queues.items()
        for each in [one for one in queue.segments if one.is_decided and one.is_writable][1:]
        if index >= total
    ]
    asked = [_sealing(found, index, each.queue) for index, each in more]
    for reply in (yield asked) if asked else ():
        granted(reply)
    return bool(asked)


def _sealing(found: LogicalTopic, index: int, queue: PhysicalQueue) -> Asking:
    address, body = found.part(queue.broker_name).address, SealLogicalQueue(index, queue.queue_id, found.name)
    return Asking(address, RequestCode.SEAL_TOPIC_LOGICAL_QUEUE, body=body.encode())


def _sealed(found: LogicalTopic, index: int) -> Plan[None]:
    """The logical queue takes no more messages."""
    writable = found.queue(index).writable
    if writable is None:
        return
    if not writable.is_decided:
        raise NotAsWantedError(
            f"logical queue {index} is on its way to {writable.queue.broker_name}: migrateTopicLogicalQueue"
            " finishes that"
        )
    (reply,) = yield [_sealing(found, index, writable.queue)]
    granted(reply)


def _made(found: LogicalTopic, cluster: str, index: int) -> Plan[None]:
    """A logical queue that never was: of a message queue that belongs to none, else of one that is expired,
    else of a new one at the broker that writes the fewest."""
    parts = sorted(found.of_cluster(cluster), key=lambda each: (found.written(each.broker), each.address))
    for part in parts:
        for queue_id in part.unmapped:
            body = UpdateLogicalQueueMapping(None, index, queue_id, found.name).encode()
            (reply,) = yield [Asking(part.address, UPDATE, body=body)]
            granted(reply)
            return
    for part in parts:
        free = found.free_queue(part.broker, index)
        if free is not None:
            yield from before_taken(found, free)
            if (yield from _taken_again(found.name, part, index, free.queue_id)):
                return
    yield from _created(found, parts[0], index)


def _written_again(found: LogicalTopic, index: int) -> Plan[None]:
    """A logical queue that was sealed goes on where it ended, at the same broker. Of segments without a
    message that begin alike nobody sees which one is the last: the broker of one that was followed
    refuses."""
    segments = found.queue(index).segments
    alike = [each for each in segments if each.logical_start == segments[-1].logical_start]
    refused: NotGrantedError | None = None
    for last in reversed(alike):
        part = found.part(last.queue.broker_name)
        is_free = last.state == State.EXPIRED
        if is_free and (yield from _taken_again(found.name, part, index, last.queue.queue_id)):
            return
        try:
            yield from _created(found, part, index)
        except NotGrantedError as error:
            refused = refused or error
        else:
            return
    assert refused is not None
    raise refused


def _taken_again(topic: str, part: LogicalPart, index: int, queue_id: int) -> Plan[bool]:
    """Whether a broker took a message queue again."""
    body = ReuseLogicalQueue(index, STATE_NAMES[State.NORMAL], queue_id, topic).encode()
    (reply,) = yield [Asking(part.address, RequestCode.REUSE_TOPIC_LOGICAL_QUEUE, body=body)]
    try:
        granted(reply)
    except NotGrantedError:
        return False
    return True


def _created(found: LogicalTopic, part: LogicalPart, index: int) -> Plan[None]:
    state, perm = STATE_NAMES[State.NORMAL], found.perm_for(part.broker)
    body = CreateLogicalQueue(index, state, found.name, perm).encode()
    code = RequestCode.CREATE_MESSAGE_QUEUE_FOR_LOGICAL_QUEUE
    (reply,) = yield [Asking(part.address, code, body=body)]
    granted(reply)


# ---- a broker that leaves ------------------------------------------------------------------------


def target_of(found: LogicalTopic, leaving: str) -> str:
    """Where a logical queue goes whose broker leaves: where the fewest are written. Raises
    NotAsWantedError."""
    of_cluster = next(each for each in found.brokers.clusters.values() if leaving in each)
    staying = [name for name in of_cluster if name != leaving and name in found.parts]
    if not staying:
        raise NotAsWantedError(f"nobody is there but {leaving} to take the logical queues of {found.name}")
    return min(staying, key=lambda name: (found.written(name), name))


def written_at(found: LogicalTopic, broker: str) -> Sequence[int]:
    """The logical queues that a broker writes."""
    queues = found.part(broker).queues
    return [index for index, queue in queues.items() if queue.writable is not None]


def left_behind(found: LogicalTopic, broker: str) -> Mapping[int, str]:
    """The logical queues that were on their way off a broker when a command was cut off, and where to: they
    wait there to learn where they begin, which that broker alone decides."""
    waiting = [
        (index, each.queue.broker_name)
        for index in found.part(broker).queues
        for each in found.queues[index].segments
        if not each.is_decided
    ]
    return {index: name for index, name in waiting if name != broker}


def ended_at(found: LogicalTopic, broker: str) -> Sequence[int]:
    """The logical queues that are not written, and of which a broker alone says where they end."""
    return [
        index
        for index, queue in found.queues.items()
        if queue.segments[-1].queue.broker_name == broker and queue.segments[-1].is_sealed
    ]


def sealed_again(name_servers: Sequence[str], topic: str) -> Plan[None]:
    """Logical queues behind the number that is written take no messages: of those that a broker that leaves
    handed on, only where they end is kept. Raises NotAsWantedError."""
    found = yield from known(name_servers, topic)
    if found.stated is not None:
        for index in found.queues:
            if index >= found.stated.enabled.queues:
                yield from _sealed(found, index)


def read_at(found: LogicalTopic, broker: str) -> Sequence[Segment]:
    """The segments of a broker that are still read."""
    return [each for each in found.part(broker).segments() if each.state == State.READ_ONLY]


def announced(found: LogicalTopic, broker: str, now_ms: int) -> Plan[None]:
    """Brokers that stay say of everything that was at a broker, and of all that it says is gone, that it is
    gone; they keep the places of groups. Raises NotAsWantedError."""
    assert found.stated is not None
    expired: dict[int, list[Interval]] = {}
    for index, queue in found.part(broker).queues.items():
        going = [each for each in queue.segments if each.state == State.EXPIRED]
        if going:
            yield from carried_over(found, index, going)
        for each in going:
            expired.setdefault(index, []).append((each.logical_start, each.logical_end))
    stated = found.part(broker).stated
    gone = with_gone({} if stated is None else stated.gone, expired)
    said = [each.stated.gone for each in found.holders if each.stated and each.broker != broker]
    if any(_says(each, gone) for each in said):
        return
    yield from enabled(found, now_ms, found.stated.enabled.queues, found.stated.enabled.total, gone)


def _says(said: Mapping[int, Sequence[Interval]], gone: Mapping[int, Sequence[Interval]]) -> bool:
    return all(
        any(first <= begin and end <= last for first, last in said.get(index, ()))
        for index, intervals in gone.items()
        for begin, end in intervals
    )
