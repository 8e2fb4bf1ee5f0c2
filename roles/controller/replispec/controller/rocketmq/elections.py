"""Elections as they are decided: counted by their outcome and cause, and told in the log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from replispec.controller.rocketmq.core.broker_set import BrokerSet
from replispec.controller.rocketmq.core.replies import Recorded, Reply
from replispec.event.v1.event_pb2 import ControllerEvent, ElectionCause
from replispec.runtime.primitives.metrics import BoundedCounts
from replispec.runtime.world import Level, Outbox
from replispec.wire.rocketmq import metrics
from replispec.wire.rocketmq.machines import broker_set_wire as wire

ELECTED: Final = "new_master_elected"
KEPT: Final = "keep_current_master"
NOBODY: Final = "no_master_elected"
_IDENTITY: Final = wire.NOTES["record_identity"]
_ELECTION: Final = wire.NOTES["record_election"]
_NO_MASTER: Final = wire.NOTES["record_no_master"]


class Elections:
    """What this controller decided as leader since it began."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self.by_set = BoundedCounts(metrics.BROKER_SET_VALUES_MAX)
        self.by_cause = BoundedCounts(metrics.CAUSE_VALUES_MAX * 3)
        # The newest election of each broker set that is proposed and not known to be decided.
        self._under_way: dict[str, int] = {}

    def begun(self, name: str, proposal: int) -> None:
        """An election of this broker set is proposed."""
        self._under_way[name] = proposal

    def is_under_way(self, name: str) -> bool:
        """Whether it has been, and what becomes of it is not known: another one would decide nothing more."""
        return name in self._under_way

    def refused(self, proposal: int) -> None:
        """Nothing becomes of this proposal."""
        self._under_way = {name: each for name, each in self._under_way.items() if each != proposal}

    def forget(self) -> None:
        """Nothing becomes of any, as far as this controller is told."""
        self._under_way.clear()

    def decided(self, record: ControllerEvent, broker_set: BrokerSet, replies: Iterable[Reply]) -> None:
        """A record was applied; count it if it asked for a master."""
        if self._under_way.get(broker_set.name) == record.proposal:
            del self._under_way[broker_set.name]
        said = {reply.what for reply in replies if isinstance(reply, Recorded)}
        has_asked = record.HasField("elect_master")
        if not has_asked and not said & {_ELECTION, _NO_MASTER}:
            return
        cause = ElectionCause.Name(record.elect_master.cause).removeprefix("ELECTION_CAUSE_").lower()
        result = KEPT
        if said & {_ELECTION, _NO_MASTER}:
            result = NOBODY if broker_set.variables.master is None else ELECTED
        self.by_set.add((broker_set.variables.cluster_name, broker_set.name, result))
        self.by_cause.add((cause if has_asked else "registration", result))

    def tell(self, broker_set: BrokerSet, what: str, event: object) -> None:
        """A line for what is on record now, because of an event if that came to this controller. A set that
        nobody leads is an error, and says who of it would have to live."""
        known, more = broker_set.variables, dict[str, object]()
        broker_id = getattr(event, "broker_id", None)
        if what == _IDENTITY and broker_id is not None:
            more["id"] = broker_id
        is_lost = known.master is None and what in (_ELECTION, _NO_MASTER)
        if is_lost:
            waits = sorted(known.sync_state_set)
            more["waiting_for"] = [f"{each} ({known.addresses.get(each, '')})" for each in waits]
        self._outbox.note(
            Level.ERROR if is_lost else Level.INFO,
            what,
            broker=broker_set.name,
            master=known.master,
            master_epoch=known.master_epoch,
            sync_state_set=sorted(known.sync_state_set),
            sync_state_set_epoch=known.sync_state_set_epoch,
            **more,
        )
