"""A client of a simulated cluster: it sends, reads back, and asks the controller who is who."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.remoting import Calls, Outcome
from replispec.runtime.rocketmq.remoting.calls import Failure
from replispec.runtime.sim import Rng
from replispec.runtime.world import Effect, Event, Outbox, Started
from replispec.wire.rocketmq.broker import (
    PullMessageRequest,
    PullMessageResponse,
    SendMessageResponse,
    SendMessageV2Request,
)
from replispec.wire.rocketmq.client import GetMaxOffsetRequest, GetMaxOffsetResponse
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.controller import BrokerNames, BrokerReplicasInfo, ReplicasInfo
from replispec.wire.rocketmq.store import LogRecord
from tests.playbook import deliver
from tests.sim.history import History, View

TOPIC: Final = "simulated"
QUEUES: Final = 2
TIMEOUT_MS: Final = 3_000
UNANSWERED_MAX: Final = 4
OFFSET_DIGITS: Final = 16
"""The last digits of a message's id are its offset in the log."""
NOTHING_HERE: Final = (
    ResponseCode.PULL_NOT_FOUND,
    ResponseCode.PULL_RETRY_IMMEDIATELY,
    ResponseCode.PULL_OFFSET_MOVED,
)


class Client:
    """Sends one message after the other, a few at a time, to whom it takes for the master."""

    def __init__(
        self,
        history: History,
        rng: Rng,
        *,
        controllers: Sequence[str],
        brokers: Sequence[str],
        broker_name: str,
        obeys: bool = False,
    ) -> None:
        self.history = history
        self.is_sending = True
        self.is_reading = True
        self.queue_of: Callable[[int], int] = lambda number: number % QUEUES
        self.master = brokers[0]
        self._rng = rng
        self._controllers = controllers
        self._asked = 0
        self._brokers = brokers
        self._broker_name = broker_name
        # A consumer that goes where brokers tell it, asks any of them, and asks where queues end.
        self._obeys = obeys
        self._outbox = Outbox()
        self._calls = Calls(self._outbox)
        self._unanswered = 0
        self._send_ms = 0
        self._watch_ms = 0
        self._read_ms = [0] * QUEUES
        self._reading = [False] * QUEUES
        self.positions = [0] * QUEUES

    @property
    def listeners(self) -> Mapping[str, str]:
        """None."""
        return {}

    def deadline_ms(self) -> int | None:
        """When something is to be done."""
        own = min(self._send_ms, self._watch_ms, *self._read_ms)
        calls = self._calls.deadline_ms()
        return own if calls is None else min(own, calls)

    def receive(self, event: Event) -> Sequence[Effect]:
        """Take one event."""
        deliver(self._calls, event)
        if isinstance(event, Started):
            self._send_ms = self._watch_ms = event.now_ms
        now_ms = event.now_ms
        self._calls.ticked(now_ms)
        if now_ms >= self._watch_ms:
            self._watch(now_ms)
        if now_ms >= self._send_ms:
            self._send(now_ms)
        for queue, when_ms in enumerate(self._read_ms):
            if now_ms >= when_ms:
                self._read(queue, now_ms)
        return self._outbox.take()

    def _watch(self, now_ms: int) -> None:
        self._watch_ms = now_ms + 500
        body = BrokerNames(names=[self._broker_name]).encode()
        code = RequestCode.CONTROLLER_GET_SYNC_STATE_DATA
        self._calls.ask(
            self._controllers[self._asked % len(self._controllers)],
            code,
            self._watched,
            now_ms=now_ms,
            timeout_ms=TIMEOUT_MS,
            body=body,
        )

    def _watched(self, outcome: Outcome, now_ms: int) -> None:
        if isinstance(outcome, Failure) or outcome.header.code != ResponseCode.SUCCESS:
            self._asked += 1
            return
        table = BrokerReplicasInfo.decode(outcome.body).replicas_info_table or {}
        received = table.get(self._broker_name)
        if received is None:
            return
        self.history.view(seen(received, now_ms))
        if received.master_address:
            self.master = received.master_address

    def _send(self, now_ms: int) -> None:
        self._send_ms = now_ms + self._rng.between(20, 100)
        if not self.is_sending or self._unanswered >= UNANSWERED_MAX:
            return
        number, broker = self.history.sent, self.master
        self.history.sent += 1
        self._unanswered += 1
        header = SendMessageV2Request(
            producer_group="simulation",
            topic=TOPIC,
            default_topic="TBW102",
            default_topic_queue_nums=QUEUES,
            queue_id=self.queue_of(number),
            born_timestamp=now_ms,
            sys_flag=0,
            flag=0,
        )
        self._calls.ask(
            broker,
            RequestCode.SEND_MESSAGE_V2,
            lambda outcome, _: self._sent(number, broker, outcome),
            now_ms=now_ms,
            timeout_ms=TIMEOUT_MS,
            ext_fields=header.to_ext_fields(),
            body=b"%d" % number + b"." * self._rng.below(300),
        )

    def _sent(self, number: int, broker: str, outcome: Outcome) -> None:
        self._unanswered -= 1
        if isinstance(outcome, Failure):
            self._try_another(broker)
        elif outcome.header.code == ResponseCode.SUCCESS:
            received = SendMessageResponse.from_ext_fields(outcome.header.ext_fields or {})
            assert received.queue_id is not None
            assert received.queue_offset is not None
            assert received.msg_id is not None
            self.history.logged[number] = int(received.msg_id[-OFFSET_DIGITS:], 16)
            self.history.acknowledge(number, (received.queue_id, received.queue_offset), broker)
        else:
            self.history.refused[number] = outcome.header.code
            self._try_another(broker)

    def _try_another(self, broker: str) -> None:
        if self.master == broker:
            self.master = self._rng.one_of(self._brokers)

    def _read(self, queue: int, now_ms: int) -> None:
        self._read_ms[queue] = now_ms + 300
        if self._reading[queue] or not self.is_reading:
            return
        self._reading[queue] = True
        broker = self._any_broker() if self._obeys else self.master
        if self._obeys and self._rng.happens(100):
            self._ask_end(queue, broker, now_ms)
        header = PullMessageRequest(
            consumer_group="simulation",
            topic=TOPIC,
            queue_id=queue,
            queue_offset=self.positions[queue],
            max_msg_nums=32,
            sys_flag=0,
            commit_offset=0,
            suspend_timeout_millis=0,
            subscription="*",
            sub_version=0,
        )
        self._calls.ask(
            broker,
            RequestCode.PULL_MESSAGE,
            lambda outcome, now_ms: self._got(queue, broker, outcome, now_ms),
            now_ms=now_ms,
            timeout_ms=TIMEOUT_MS,
            ext_fields=header.to_ext_fields(),
        )

    def _any_broker(self) -> str:
        return self._rng.one_of(self._brokers) if self._rng.happens(200) else self.master

    def _ask_end(self, queue: int, broker: str, now_ms: int) -> None:
        """Ask where a queue ends, as a group does that begins at the end."""
        position = self.positions[queue]

        def told(outcome: Outcome, _now_ms: int) -> None:
            if not isinstance(outcome, Failure) and outcome.header.code == ResponseCode.SUCCESS:
                end = GetMaxOffsetResponse.from_ext_fields(outcome.header.ext_fields or {}).offset
                if end == 0 < position:
                    self.history.moved(f"{broker} says that queue {queue} ends at {end}, {position} was read")

        fields = GetMaxOffsetRequest(topic=TOPIC, queue_id=queue).to_ext_fields()
        code = RequestCode.GET_MAX_OFFSET
        self._calls.ask(broker, code, told, now_ms=now_ms, timeout_ms=TIMEOUT_MS, ext_fields=fields)

    def _go(self, queue: int, broker: str, outcome: Command) -> None:
        """Read on where a broker says."""
        told = PullMessageResponse.from_ext_fields(outcome.header.ext_fields or {}).next_begin_offset
        if told is not None and told != self.positions[queue]:
            position, self.positions[queue] = self.positions[queue], told
            if position < told and self.history.may_skip(queue, position, told):
                return
            self.history.moved(f"{broker} moved a consumer of queue {queue} from {position} to {told}")

    def _got(self, queue: int, broker: str, outcome: Outcome, now_ms: int) -> None:
        self._reading[queue] = False
        if isinstance(outcome, Failure):
            return
        if outcome.header.code != ResponseCode.SUCCESS:
            if self._obeys and outcome.header.code in NOTHING_HERE:
                self._go(queue, broker, outcome)
            return
        for record in records(outcome.body):
            self.history.see((record.queue_id, record.queue_offset), number_of(record))
            self.positions[queue] = record.queue_offset + 1
        self._read_ms[queue] = now_ms


def seen(received: ReplicasInfo, now_ms: int) -> View:
    """What a controller said of a set."""
    return View(
        now_ms,
        received.master_broker_id or 0,
        received.master_epoch or 0,
        tuple(sorted(each.broker_id or 0 for each in received.in_sync_replicas or ())),
        received.sync_state_set_epoch or 0,
    )


def records(data: bytes | memoryview) -> list[LogRecord]:
    """All whole records at the start of some bytes of a log."""
    found = []
    at = 0
    while at < len(data):
        try:
            record, at = LogRecord.decode_at(data, at, len(data))
        except RemoteProtocolError:
            break
        if not (record.topic and record.body_crc_holds):
            # What a disk lost a part of, in a log that its broker refuses.
            break
        found.append(record)
    return found


def number_of(record: LogRecord) -> int:
    """The number of the message that a record holds."""
    return int(record.body.partition(b".")[0])
