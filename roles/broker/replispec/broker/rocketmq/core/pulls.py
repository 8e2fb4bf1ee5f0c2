"""Messages for consumers, at once or as soon as there are some, and where queues begin and end.

It runs the machine `broker_pulls`.

Source: RIP-44 "ConfirmOffset"; apache/rocketmq rocketmq-all-5.4.0, PullMessageProcessor,
PullRequestHoldService, AdminBrokerProcessor.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from replispec.broker.rocketmq.core.held import HeldPull, HeldPulls, QueueKey
from replispec.broker.rocketmq.core.offsets import ConsumerOffsets
from replispec.broker.rocketmq.core.subscription_groups import SubscriptionGroups
from replispec.broker.rocketmq.core.topics import AskedTopic, Topics
from replispec.broker.rocketmq.core.views import LogicalView
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.metrics import SERIES_MAX, BoundedCounts
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.client.holders import PulledItem
from replispec.runtime.rocketmq.log import MessageStore, Queue
from replispec.runtime.rocketmq.remoting import host_of
from replispec.runtime.rocketmq.remoting.answering import Answering
from replispec.runtime.rocketmq.remoting.server import BROKER_RELEASE, Request
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.broker import PullMessageRequest
from replispec.wire.rocketmq.codes import Permission
from replispec.wire.rocketmq.machines import broker_pulls as machine
from replispec.wire.rocketmq.machines import broker_pulls_wire as wire
from replispec.wire.rocketmq.store import LogRecord

ANSWER_BYTES_MAX: Final = 256 * 1024
MESSAGES_MAX: Final = 1_024
HELD_MS_MAX: Final = 60_000
ANSWERS_AT_ONCE: Final = 64
"""Pulls that waited and are answered because of one event; others are in the next turn."""


class ConfirmedLog(Protocol):
    """What is asked of the broker before a position is called wrong."""

    @property
    def knows_confirmed(self) -> bool:
        """Whether this is a master that knows what is confirmed of what it has stored."""
        ...

    def ask_who_is_master(self, now_ms: int) -> None:
        """Ask the controller: this broker may be master no more. `is_master_since` hears of it."""
        ...


class Pulls:
    """Answers pulls. Nothing that is not in the store's index is ever shown. It is what only this broker
    knows; see `local` of the machine."""

    def __init__(
        self,
        store: MessageStore,
        topics: Topics,
        offsets: ConsumerOffsets,
        groups: SubscriptionGroups,
        log: ConfirmedLog,
    ) -> None:
        self.may_consume: Final = groups.may_consume
        self._store = store
        self._log = log
        self._asked_topic = AskedTopic(topics)
        self._offsets = offsets
        self._held: Final = HeldPulls()
        # Queues that show more than those who wait for them were told, in the order in which they grew.
        self._grown: dict[QueueKey, None] = {}
        # What was read for the last pull: those who wait for the same are given the same bytes.
        self._last_read: tuple[object, tuple[int, bytes]] | None = None
        # As of which time the controller says that this broker is master.
        self._is_master_ms = -1
        self._ask_ms = 0
        self.given_count = 0
        self.given: Final = BoundedCounts(SERIES_MAX)
        self.given_bytes: Final = BoundedCounts(SERIES_MAX)
        self._bound = wire.bound(self, rules)
        self._answering = Answering(
            self._bound,
            {"give_messages": self._give_messages},
            version=BROKER_RELEASE,
        )
        self._take = self._answering.take
        # How who asks now counts.
        self._view: LogicalView | None = None
        self.table: Final = dict.fromkeys(self._answering.table, self._asked)

    def _asked(self, request: Request) -> None:
        """Take a request. Raises Refused, RemoteProtocolError."""
        self._view = request.view
        self._asked_topic.begin()
        try:
            self._answering.asked(request)
        finally:
            self._view = None

    def _give_messages(self, request: Request, pulled: machine.Pulled) -> None:
        """Answer a pull, or hold it."""
        if self._tells_moved(request, pulled):
            return
        if pulled.read_up_to is not None and pulled.read_up_to > 0:
            queue = pulled.group, pulled.topic, pulled.queue_id
            self._offsets.put(queue, pulled.read_up_to, host_of(request.peer), request.now_ms)
        wait_ms = min(pulled.wait_ms, HELD_MS_MAX)
        self._last_read = None
        if self._answer(request, pulled):
            self._last_read = None
            return
        is_doubtful = self._is_outside(pulled)
        if is_doubtful:
            # For the controller's word on who is master.
            wait_ms = max(wait_ms, constants.ANSWER_TIMEOUT_MS)
        if wait_ms <= 0 or self._held.is_full:
            self._none(request, pulled)
            return
        self._held.add(request, pulled, request.now_ms + wait_ms, is_doubtful=is_doubtful)

    def _tells_moved(self, request: Request, pulled: machine.Pulled) -> bool:
        """Whether the group was moved, and its consumer is told now."""
        position = self._offsets.take_moved((pulled.group, pulled.topic, pulled.queue_id))
        if position is None:
            return False
        self._tell_moved(request, position, *self._bounds(pulled.topic, pulled.queue_id))
        return True

    def shown(self) -> None:
        """More messages may be shown: answer those that waited for them."""
        self._grown.update(dict.fromkeys(self._store.index.take_grown()))
        self._last_read = None
        self._serve()
        self._last_read = None

    def _serve(self) -> None:
        """Answer those that wait for queues that grew, no more than a turn may have."""
        left = ANSWERS_AT_ONCE
        while self._grown and left:
            key = next(iter(self._grown))
            queue = self._store.index.queues.get(key)
            waiting: list[HeldPull] = []
            if queue is not None:
                for held in self._held.before(key, queue.next):
                    if self._answer(held.request, held.pulled):
                        self._held.remove(held)
                        left -= 1
                    else:
                        waiting.append(held)
                    if not left:
                        break
            for held in waiting:
                self._held.put_back(held)
            if left:
                del self._grown[key]

    def is_master_since(self, asked_ms: int) -> None:
        """A controller that was asked then, or later, named this broker: tell those who wait outside."""
        self._is_master_ms = asked_ms
        for held in self._held.take_doubtful():
            if self._is_outside(held.pulled):
                if self._answer(held.request, held.pulled):
                    self._held.remove(held)
                else:
                    self._held.doubt(held)

    def ended(self, topic: str, queue_id: int, tells: Callable[[Request], bool]) -> None:
        """A queue goes on elsewhere: those that wait for it and are told so wait no more."""
        waiting: list[HeldPull] = []
        for held in self._held.before((topic, queue_id), constants.OFFSET_MAX):
            if tells(held.request):
                self._held.remove(held)
            else:
                waiting.append(held)
        for held in waiting:
            self._held.put_back(held)

    @property
    def waiting(self) -> int:
        """How many wait for messages."""
        return len(self._held)

    def closed(self, connection: int) -> None:
        """A connection is gone; no pull waits on it any more."""
        self._held.closed(connection)

    def ticked(self, now_ms: int) -> None:
        """Tell those that waited long enough that there is nothing, and go on with those that were not told
        yet that there is more."""
        if self._grown:
            self.shown()
        for one in self._held.take_late(now_ms):
            self._none(one.request, one.pulled)

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        return 0 if self._grown else self._held.deadline_ms()

    # What the machine asks

    def has_topic(self, topic: str, /) -> bool:
        """Whether the broker has this topic."""
        return self._asked_topic.get(topic) is not None

    def may_read(self, topic: str, /) -> bool:
        """Whether messages of this topic may be read."""
        config = self._asked_topic.get(topic)
        return config is not None and rules.has_bit(config.perm or 0, Permission.READ)

    def read_queues(self, topic: str, /) -> int:
        """How many queues of this topic may be read."""
        config = self._asked_topic.get(topic)
        return 0 if config is None else config.read_queue_nums or 0

    @property
    def knows(self) -> bool:
        """Whether this is a master that knows what is confirmed."""
        return self._log.knows_confirmed

    def oldest(self, topic: str, queue_id: int, /) -> int:
        """The position of the oldest message of a queue."""
        return self._counted(topic, queue_id)[0]

    def next(self, topic: str, queue_id: int, /) -> int:
        """Where the next message of a queue that is shown goes."""
        return self._counted(topic, queue_id)[1]

    def stored_since(self, topic: str, queue_id: int, timestamp: int, /) -> int:
        """Where the first message is that was stored at a time or later."""
        queue = self._store.index.queues.get((topic, queue_id))
        if self._view is not None and self._view.told is not None:
            return self._view.told
        found = self._bounds(topic, queue_id)[1] if queue is None else self._first_at(queue, timestamp)
        return found if self._view is None else self._view.segment.logical_of(found)

    def has_since(self, queue_id: int, topic: str, timestamp: int, /) -> bool:
        """Whether a queue shows a message that was stored at a time or later."""
        return self.since(topic, queue_id, timestamp) is not None

    def since(self, topic: str, queue_id: int, timestamp: int) -> int | None:
        """The first message that a queue shows of those that were stored at a time or later."""
        queue = self._store.index.queues.get((topic, queue_id))
        found = None if queue is None else self._first_at(queue, timestamp)
        return None if queue is None or found is None or found >= queue.next else found

    def end_of(self, topic: str, queue_id: int) -> int:
        """Where a queue ends that is shown, whoever asks."""
        return self._bounds(topic, queue_id)[1]

    def bounds_of(self, topic: str, queue_id: int) -> tuple[int, int]:
        """Where a queue begins and ends, what is not shown included."""
        found = self._store.index.bounds(topic, queue_id)
        return found.first, found.end

    def stored_at(self, topic: str, queue_id: int, position: int, /) -> tuple[int, int]:
        """When a message was stored, 0 where it is not there; and how many bytes were read for that."""
        queue = self._store.index.queues.get((topic, queue_id))
        return (0, 0) if queue is None else self._stored_at(queue, position)

    # Queues

    def _counted(self, topic: str, queue_id: int) -> tuple[int, int]:
        """Where a queue begins and ends, as who asks now counts."""
        if self._view is None:
            return self._bounds(topic, queue_id)
        told = self._view.told
        return self._around(self._view) if told is None else (told, told)

    def _around(self, view: LogicalView) -> tuple[int, int]:
        """Where a segment begins and its logical queue ends."""
        return view.bounds(partial(self._bounds, view.topic))

    def _bounds(self, topic: str, queue_id: int) -> tuple[int, int]:
        found = self._store.index.bounds(topic, queue_id)
        return found.first, found.next

    def _is_outside(self, pulled: machine.Pulled) -> bool:
        """Whether a consumer has to be sent elsewhere if this broker is master."""
        found = self._store.index.bounds(pulled.topic, pulled.queue_id)
        return rules.moves_consumer(pulled.position, found.first, found.end, is_known=self.knows)

    def _may_move(self, request: Request) -> bool:
        """Whether the controller was asked since, and says that this broker is master: one that was cut off
        has less than its successor. Asks, if not."""
        if self._is_master_ms >= request.now_ms:
            return True
        if request.now_ms >= self._ask_ms:
            self._ask_ms = request.now_ms + constants.MASTER_ASK_MS
            self._log.ask_who_is_master(request.now_ms)
        return False

    def _answer(self, request: Request, pulled: machine.Pulled) -> bool:
        """Answer unless nothing is shown at the position asked for, yet or here."""
        queue = self._store.index.queues.get((pulled.topic, pulled.queue_id))
        first, end = self._bounds(pulled.topic, pulled.queue_id)
        position = pulled.position
        if self._is_read(request, pulled):
            self._tell_moved(request, end, first, end)
            return True
        if self._is_outside(pulled):
            if self._may_move(request):
                self._tell_moved(request, first if position < first else end, first, end)
                return True
            return False
        if queue is None or not first <= position < end:
            return False
        count, records = self._read(queue, pulled)
        if not count and not self.knows:
            return False
        if not count:
            self._tell_moved(request, first, first, end)
            return True
        self.given_count += count
        self.given.add((pulled.topic, pulled.group), count)
        self.given_bytes.add((pulled.topic, pulled.group), len(records))
        self._tell_found(request, position + count, first, end, records)
        return True

    def _tell_found(self, request: Request, next_: int, oldest: int, end: int, records: bytes) -> None:
        view: LogicalView | None = request.view
        if view is None:
            self._take(request, machine.Found(next_, oldest, end, None, records))
        else:
            begin, last = view.told_of(oldest, end, partial(self._bounds, view.topic))
            delta = view.segment.offset_delta
            self._take(request, machine.Found(next_ + delta, begin, last, delta, records))

    def _tell_moved(self, request: Request, next_: int, oldest: int, end: int) -> None:
        """Send a consumer elsewhere: to the next segment, if it has read all of one that ended."""
        view: LogicalView | None = request.view
        if view is None:
            self._take(request, machine.Moved(next_, oldest, end, None))
            return
        bounds, delta = self._around(view), view.segment.offset_delta
        if next_ >= end and view.segment != view.newest:
            self._tell_crossed(request, view)
        elif next_ < end and view.segment != view.oldest:
            self._take(request, machine.Crossed(view.segment.logical_of(next_), *bounds, delta))
        else:
            self._take(request, machine.Moved(view.segment.logical_of(next_), *bounds, delta))

    def _tell_crossed(self, request: Request, view: LogicalView) -> None:
        """Send a consumer over the border, to the segment that follows."""
        bounds_of = partial(self._bounds, view.topic)
        segment = view.following or view.segment
        begin = max(view.border, view.begin_of(segment, bounds_of))
        bounds = view.begin_of(segment, bounds_of), max(begin, view.end(bounds_of))
        self._take(request, machine.Crossed(begin, *bounds, segment.offset_delta))

    def check(self, request: Request, header: PullMessageRequest) -> None:
        """What a pull with this header would be refused for. Raises Refused."""
        command = request.command
        self._asked_topic.begin()
        self._bound.event_of(request.code, header.to_ext_fields(), command.body, command.release)

    def tell_elsewhere(self, request: Request, view: LogicalView, position: int, found: PulledItem) -> None:
        """Answer a pull with what another broker has of the segment from a physical position on."""
        segment, low, top = view.segment, found.min_offset, found.max_offset
        if view.following is not None:
            low = min(low, segment.physical_of(view.border))
        end = max(segment.logical_of(top), view.end(partial(self._bounds, view.topic)))
        if view.following is not None:
            top = min(top, segment.physical_of(view.border))
        said = segment.logical_of(low), end, segment.offset_delta
        following = segment.logical_of(found.next_offset)
        if found.records is not None:
            self._take(request, machine.Found(following, *said, found.records))
        elif position < low and segment != view.oldest:
            self._take(request, machine.Crossed(segment.logical_of(low), *said))
        elif position < low:
            self._take(request, machine.Moved(segment.logical_of(low), *said))
        elif position >= top and view.following is not None:
            self._tell_crossed(request, view)
        else:
            # Who does not know what is confirmed tells of an end that is none.
            place = max(found.next_offset, low)
            if view.following is not None:
                place = min(place, segment.physical_of(view.border))
            self._take(request, machine.NotFound(segment.logical_of(place), *said))

    def _is_read(self, request: Request, pulled: machine.Pulled) -> bool:
        """Whether a consumer has read all of a segment that is followed by another one."""
        view: LogicalView | None = request.view
        end = self._store.index.bounds(pulled.topic, pulled.queue_id).end
        is_over = view is not None and view.segment != view.newest
        return is_over and self.knows and pulled.position >= end

    def _read(self, queue: Queue, pulled: machine.Pulled) -> tuple[int, bytes]:
        """Likewise `_records`, which those who wait for the same share."""
        same = pulled.topic, pulled.queue_id, pulled.position, pulled.messages_max, pulled.bytes_max
        if self._last_read is None or self._last_read[0] != same:
            self._last_read = same, self._records(queue, pulled)
        return self._last_read[1]

    def _records(self, queue: Queue, pulled: machine.Pulled) -> tuple[int, bytes]:
        """How many records from a position on fit into one answer, at least one that is there; their bytes.

        Those that lie one after the other in the log are read as one run.
        """
        count_max = max(1, min(pulled.messages_max, MESSAGES_MAX))
        bytes_max = min(pulled.bytes_max or ANSWER_BYTES_MAX, ANSWER_BYTES_MAX)
        runs: list[list[int]] = []
        count = size = 0
        while count < count_max and (entry := queue.at(pulled.position + count)) is not None:
            size += entry.size
            if count and size > bytes_max:
                break
            if not runs or runs[-1][1] != entry.offset:
                runs.append([entry.offset, entry.offset])
            runs[-1][1] += entry.size
            count += 1
        found = [self._store.log.read(start, end - start) for start, end in runs]
        records = [each for each in found if each is not None]
        # The log loses its beginning alone: with any record, the first one is gone.
        return (count, b"".join(records)) if len(records) == len(found) else (0, b"")

    def _none(self, request: Request, pulled: machine.Pulled) -> None:
        first, end = self._bounds(pulled.topic, pulled.queue_id)
        view: LogicalView | None = request.view
        if view is None:
            self._take(request, machine.NotFound(pulled.position, first, end, None))
        else:
            said = view.segment.logical_of(pulled.position), *self._around(view)
            self._take(request, machine.NotFound(*said, view.segment.offset_delta))

    def _first_at(self, queue: Queue, timestamp: int) -> int:
        return _bisect(
            queue.first, queue.next, lambda position: self._stored_at(queue, position)[0] >= timestamp
        )

    def _stored_at(self, queue: Queue, position: int) -> tuple[int, int]:
        entry = queue.at(position)
        data = None if entry is None else self._store.log.read(entry.offset, entry.size)
        if data is None:
            return 0, 0
        try:
            return LogRecord.decode(data).store_timestamp, len(data)
        except RemoteProtocolError:
            return 0, len(data)


def _bisect(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The first number for which `holds`; `high` when it holds for none."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low
