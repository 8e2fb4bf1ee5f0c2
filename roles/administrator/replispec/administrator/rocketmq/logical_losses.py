"""A broker that is gone for good with segments that were still read: brokers that stay say that these logical
offsets are gone, so that name servers tell the topic without it, and nobody waits for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from replispec.administrator.rocketmq.logical_queues import enabled
from replispec.administrator.rocketmq.logical_topics import LogicalTopic, known
from replispec.administrator.rocketmq.plans import NotAsWantedError, Plan
from replispec.runtime.rocketmq.queues import LogicalQueue
from replispec.runtime.rocketmq.queues.telling import Interval


def declared_lost(
    name_servers: Sequence[str], topic: str, broker: str, now_ms: int
) -> Plan[Mapping[int, Sequence[Interval]]]:
    """What nobody holds but a broker that is gone is said to be gone; which offsets, by index. Raises
    NotAsWantedError: where it answers, where another one does not, which may hold them, and where a logical
    queue is written nowhere else, which -fd carries on."""
    found = yield from known(name_servers, topic)
    if found.stated is None:
        raise NotAsWantedError(f"logical queues of {topic} are not enabled")
    if broker in found.parts:
        raise NotAsWantedError(f"{broker} answers: leave out --lost")
    silent = sorted(found.silent.keys() - {broker})
    if silent:
        raise NotAsWantedError(
            f"{silent[0]} does not answer, and may hold what nobody else has: {found.silent[silent[0]]}"
        )
    said = found.stated.enabled
    missing = {index: [*_missing(found, index)] for index in range(said.queues)}
    gone = {index: intervals for index, intervals in missing.items() if intervals}
    if gone:
        yield from enabled(found, now_ms, said.queues, said.total, gone)
    return gone


def _missing(found: LogicalTopic, index: int) -> Iterator[Interval]:
    """The offsets of a logical queue that no broker that answers holds, up to where it is written."""
    queue = found.queues.get(index, LogicalQueue(index))
    held = [each for each in queue.segments if each.is_decided and each.queue.broker_name in found.parts]
    if not any(each.is_writable for each in held):
        raise NotAsWantedError(
            f"logical queue {index} is written by nobody that answers: migrateTopicLogicalQueue -fd first"
        )
    reach = 0
    for each in held:
        if each.logical_start > reach:
            yield reach, each.logical_start
        reach = max(reach, each.logical_end)
