"""What a replica copies from its master beside the log, on the machine `beside_log`.

Source: apache/rocketmq rocketmq-all-5.4.0, SlaveSynchronize.
"""

from __future__ import annotations

from replispec.broker.rocketmq.core.copied import CopiedTables
from replispec.broker.rocketmq.core.mappings import Mappings
from replispec.broker.rocketmq.core.offsets import ConsumerOffsets
from replispec.broker.rocketmq.core.topics import Topics
from replispec.runtime.primitives.bindings import Call
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.membership import MachineRunner, Nothing
from replispec.runtime.rocketmq.remoting.calls import Calls, Failure, Outcome
from replispec.runtime.world import Level, Outbox
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.client import (
    GetAllConsumerOffsetRequest,
    GetAllDelayOffsetRequest,
    GetAllMessageRequestModesRequest,
    GetAllSubscriptionGroupsRequest,
    GetAllTopicConfigRequest,
)
from replispec.wire.rocketmq.machines import beside_log as machine
from replispec.wire.rocketmq.machines import beside_log_wire as wire
from replispec.wire.rocketmq.options import BrokerOptions

Asking = (
    Call[GetAllTopicConfigRequest]
    | Call[GetAllConsumerOffsetRequest]
    | Call[GetAllSubscriptionGroupsRequest]
    | Call[GetAllDelayOffsetRequest]
    | Call[GetAllMessageRequestModesRequest]
)

Asks = machine.Followed | machine.Due


class SlaveSync:
    """Asks the master that `follow` named every few seconds. What fails is asked again next time."""

    def __init__(
        self,
        outbox: Outbox,
        calls: Calls,
        topics: Topics,
        mappings: Mappings,
        offsets: ConsumerOffsets,
        copied: CopiedTables,
        options: BrokerOptions,
    ) -> None:
        self._outbox = outbox
        self._calls = calls
        self._topics = topics
        self._mappings = mappings
        self._offsets = offsets
        self._copied = copied
        self._runner = MachineRunner(machine.MACHINE, self, options)
        self._address: str | None = None

    def follow(self, address: str, now_ms: int) -> None:
        """Copy from the master at this address, at once."""
        self._address = address
        self._runner.take(machine.Followed(), now_ms)

    def stop(self) -> None:
        """Copy nothing more."""
        self._address = None
        self._runner.take(machine.Left())

    def ticked(self, now_ms: int) -> None:
        """Ask when it is time."""
        self._runner.ticked(now_ms)

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        return self._runner.deadline_ms()

    # Effects of the machine

    def ask_topics(self, _event: Asks) -> Nothing:
        """Ask for all topics."""
        self._ask(wire.ask_topics())
        return ()

    def ask_positions(self, _event: Asks) -> Nothing:
        """Ask how far all groups have read."""
        self._ask(wire.ask_positions())
        return ()

    def ask_groups(self, _event: Asks) -> Nothing:
        """Ask for the groups that somebody configured."""
        self._ask(wire.ask_groups())
        return ()

    def ask_delays(self, _event: Asks) -> Nothing:
        """Ask how far delayed messages were delivered."""
        self._ask(wire.ask_delays())
        return ()

    def ask_modes(self, _event: Asks) -> Nothing:
        """Ask who receives how."""
        self._ask(wire.ask_modes())
        return ()

    def adopt_topics(self, event: machine.TopicsTold) -> Nothing:
        """Take over the master's topics."""
        self._topics.adopt(event.topics, self._runner.now_ms, self._topics_kept)
        return ()

    def adopt_mappings(self, event: machine.TopicsTold) -> Nothing:
        """Take over mappings of static topics of which the log has no record, as a master of Apache's log."""
        self._mappings.adopt(event.table.topic_queue_mapping_detail_map or {})
        return ()

    def adopt_positions(self, event: machine.PositionsTold) -> Nothing:
        """Take over how far groups have read."""
        self._offsets.adopt(event.positions, self._runner.now_ms)
        return ()

    def adopt_groups(self, event: machine.GroupsTold) -> Nothing:
        """Keep the master's groups."""
        self._copied.groups.adopt(event.groups)
        return ()

    def adopt_delays(self, event: machine.DelaysTold) -> Nothing:
        """Keep how far the master delivered."""
        self._copied.delays.adopt(event.delays)
        return ()

    def adopt_modes(self, event: machine.ModesTold) -> Nothing:
        """Keep who receives how."""
        self._copied.modes.adopt(event.modes)
        return ()

    def _ask(self, call: Asking) -> None:
        address = self._address
        assert address is not None, "a master was named"

        def answered(outcome: Outcome, at_ms: int) -> None:
            if address == self._address:
                self._runner.take(self._told(call.code, outcome), at_ms)

        fields, wait_ms = call.header.to_ext_fields(), constants.ANSWER_TIMEOUT_MS
        self._calls.ask(
            address, call.code, answered, now_ms=self._runner.now_ms, timeout_ms=wait_ms, ext_fields=fields
        )

    def _told(self, asked: int, outcome: Outcome) -> machine.Event:
        """The event that an answer is; one that cannot be read is noted."""
        if isinstance(outcome, Failure):
            return machine.Failed()
        header = outcome.header
        try:
            event = wire.outcome_of(asked, header.code, header.ext_fields or {}, outcome.body)
        except RemoteProtocolError as error:
            self._note(str(error))
            event = None
        return event or machine.Failed()

    def _topics_kept(self, reason: str, _now_ms: int) -> None:
        if reason:
            self._note(reason)

    def _note(self, reason: str) -> None:
        self._outbox.note(Level.WARNING, "what the master keeps cannot be copied", reason=reason)
