"""What a replica copies from its master beside the log: topics, and how far consumers have read.

Source: apache/rocketmq rocketmq-all-5.4.0, SlaveSynchronize.
"""

from __future__ import annotations

from collections.abc import Callable

from replispec.broker.rocketmq.core.offsets import ConsumerOffsets
from replispec.broker.rocketmq.core.topics import Topics
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.remoting.calls import Calls, Failure, Outcome
from replispec.runtime.world import Level, Outbox
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.broker import TopicConfigTable
from replispec.wire.rocketmq.client import (
    ConsumerOffsetTable,
    GetAllConsumerOffsetRequest,
    GetAllTopicConfigRequest,
)
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode


class SlaveSync:
    """Asks the master that `follow` named every few seconds. What fails is asked again next time."""

    def __init__(self, outbox: Outbox, calls: Calls, topics: Topics, offsets: ConsumerOffsets) -> None:
        self._outbox = outbox
        self._calls = calls
        self._topics = topics
        self._offsets = offsets
        self._address: str | None = None
        self._due_ms: int | None = None

    def follow(self, address: str, now_ms: int) -> None:
        """Copy from the master at this address, at once."""
        self._address = address
        self.ticked(now_ms, force=True)

    def stop(self) -> None:
        """Copy nothing more."""
        self._address = self._due_ms = None

    def ticked(self, now_ms: int, *, force: bool = False) -> None:
        """Ask when it is time."""
        address = self._address
        if address is None or not (force or (self._due_ms is not None and now_ms >= self._due_ms)):
            return
        self._due_ms = now_ms + constants.SLAVE_SYNC_MS

        def ask(code: RequestCode, fields: dict[str, str | None], use: Callable[[bytes, int], None]) -> None:
            def answered(outcome: Outcome, at_ms: int) -> None:
                if address == self._address:
                    self._use(outcome, use, at_ms)

            wait_ms = constants.ANSWER_TIMEOUT_MS
            self._calls.ask(address, code, answered, now_ms=now_ms, timeout_ms=wait_ms, ext_fields=fields)

        ask(
            RequestCode.GET_ALL_TOPIC_CONFIG,
            GetAllTopicConfigRequest().to_ext_fields(),
            self._topics_received,
        )
        ask(
            RequestCode.GET_ALL_CONSUMER_OFFSET,
            GetAllConsumerOffsetRequest().to_ext_fields(),
            self._offsets_received,
        )

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        return self._due_ms

    def _use(self, outcome: Outcome, use: Callable[[bytes, int], None], now_ms: int) -> None:
        if isinstance(outcome, Failure) or outcome.header.code != ResponseCode.SUCCESS:
            return
        try:
            use(outcome.body, now_ms)
        except RemoteProtocolError as error:
            self._note(str(error))

    def _topics_received(self, body: bytes, now_ms: int) -> None:
        self._topics.adopt(TopicConfigTable.decode(body), now_ms, self._topics_kept)

    def _topics_kept(self, reason: str, _now_ms: int) -> None:
        if reason:
            self._note(reason)

    def _note(self, reason: str) -> None:
        self._outbox.note(Level.WARNING, "what the master keeps cannot be copied", reason=reason)

    def _offsets_received(self, body: bytes, now_ms: int) -> None:
        self._offsets.adopt(ConsumerOffsetTable.decode(body), now_ms)
