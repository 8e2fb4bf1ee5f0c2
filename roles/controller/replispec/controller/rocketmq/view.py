"""What a controller shows of itself: metrics, whether it is ready, and the picture of its broker sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from replispec.controller.rocketmq.core.broker_set import BrokerSet
from replispec.controller.rocketmq.core.broker_sets import BrokerSets
from replispec.controller.rocketmq.elections import Elections
from replispec.controller.rocketmq.log import ControllerLog, LogStanding
from replispec.runtime.primitives.metrics import OTHER, Sample
from replispec.runtime.rocketmq.remoting import RequestServer
from replispec.runtime.rocketmq.remoting.server import SUCCESS
from replispec.runtime.rocketmq.seeing.view import NodeView
from replispec.runtime.world import Numbers, ReadyCheck
from replispec.wire.rocketmq import metrics
from replispec.wire.rocketmq.options import ControllerOptions

ROLE: Final = "controller"
SETS_SHOWN_MAX: Final = 500
"""Broker sets that the page shows."""
_SUCCESS: Final = "success"


class ControllerNodeView(NodeView):
    """Reads what the node decides by, and changes nothing."""

    def __init__(
        self,
        options: ControllerOptions,
        server: RequestServer,
        log: ControllerLog,
        sets: BrokerSets,
        elections: Elections,
    ) -> None:
        super().__init__(ROLE, server, metrics.CONTROLLER_REQUEST_LATENCY)
        self._options = options
        self._log = log
        self._sets = sets
        self._elections = elections
        self.ended = ""
        """Why the controller ended, if its process goes on without it."""

    def who(self) -> Mapping[str, object]:
        """See `RoleView`."""
        return {"member": self._options.controller_d_leger_self_id, "port": self.port}

    def began(self) -> Mapping[str, object]:
        """See `RoleView`."""
        known = self._log.standing()
        return {
            **super().began(),
            "group": self._options.controller_d_leger_group,
            "term": known.term,
            "applied": known.applied,
            "sets": sum(1 for _ in self._sets),
        }

    def shared(self) -> Mapping[str, str]:
        """See `RoleView`."""
        return {
            **super().shared(),
            "address": self.address,
            "group": self._options.controller_d_leger_group,
            "peer_id": self._options.controller_d_leger_self_id,
        }

    def checks(self) -> Sequence[ReadyCheck]:
        """Who knows a leader, and applies what is agreed on, can decide or say who does."""
        known = self._log.standing()
        has_leader = known.leader is not None
        behind = known.commit - known.applied
        return (
            *super().checks(),
            ReadyCheck("runs", not self.ended, self.ended or "its log is read and written"),
            ReadyCheck(
                "leader", has_leader, f"{known.leader} leads" if has_leader else "nobody is known to lead"
            ),
            ReadyCheck(
                "applies",
                not known.is_full and behind <= 0,
                "its disk has no room for the log" if known.is_full else f"{max(0, behind)} records behind",
            ),
        )

    def own_samples(self, numbers: Numbers) -> Iterable[Sample]:  # noqa: ARG002
        """See `NodeView`."""
        yield from self._of_the_log(self._log.standing())
        yield from self._of_requests()
        for broker_set in islice(self._sets, metrics.BROKER_SET_VALUES_MAX):
            yield from self._of_a_set(broker_set)

    def _of_the_log(self, known: LogStanding) -> Iterator[Sample]:
        yield metrics.CONTROLLER_ROLE.of(_number_of(known))
        yield metrics.CONTROLLER_TERM.of(known.term)
        yield metrics.CONTROLLER_HAS_LEADER.of(known.leader is not None)
        yield metrics.CONTROLLER_COMMIT_INDEX.of(known.commit)
        yield metrics.CONTROLLER_APPLY_INDEX.of(known.applied)
        yield metrics.CONTROLLER_LOG_INDEX.of(known.last)
        yield metrics.CONTROLLER_SNAPSHOT_INDEX.of(known.replaced)
        yield metrics.CONTROLLER_MEMBERS.of(known.voters)
        for member, lag in sorted(known.lags.items()):
            yield metrics.CONTROLLER_MEMBER_LAG.of(lag, member)
        yield metrics.CONTROLLER_LOG_REFUSES.of(known.is_full)
        for status, count in ((_SUCCESS, known.written), ("failed", known.refused)):
            yield metrics.CONTROLLER_DLEDGER_OP_TOTAL.of(count, "append", status)
        masters = [each.variables.master for each in self._sets]
        yield metrics.CONTROLLER_BROKER_SETS.of(len(masters))
        yield metrics.CONTROLLER_BROKER_SETS_WITHOUT_MASTER.of(masters.count(None))

    def _of_requests(self) -> Iterator[Sample]:
        for (request, code), count in self.answered():
            status = _SUCCESS if code == SUCCESS else "failed"
            yield metrics.CONTROLLER_REQUEST_TOTAL.of(count, request, status)
        for (request, _, _, _), histogram in self.took():
            yield metrics.CONTROLLER_REQUEST_LATENCY.of(histogram, request)
        for key, count in self._elections.by_set.items():
            labels = key if isinstance(key, tuple) else (OTHER, OTHER, OTHER)
            yield metrics.CONTROLLER_ELECTION_TOTAL.of(count, *labels)
        for key, count in self._elections.by_cause.items():
            labels = key if isinstance(key, tuple) else (OTHER, OTHER)
            yield metrics.CONTROLLER_ELECTIONS_BY_CAUSE_TOTAL.of(count, *labels)

    def _of_a_set(self, broker_set: BrokerSet) -> Iterator[Sample]:
        known, living = broker_set.variables, self._sets.local(broker_set).living
        labels = known.cluster_name, broker_set.name
        yield metrics.CONTROLLER_ACTIVE_BROKER_NUM.of(len(living), *labels)
        yield metrics.CONTROLLER_BROKERS.of(len(known.broker_ids), *labels)
        yield metrics.CONTROLLER_HAS_MASTER.of(known.master is not None, *labels)
        yield metrics.CONTROLLER_MASTER_EPOCH.of(known.master_epoch, *labels)
        yield metrics.CONTROLLER_SYNC_STATE_SET_SIZE.of(len(known.sync_state_set), *labels)
        yield metrics.CONTROLLER_SYNC_STATE_SET_EPOCH.of(known.sync_state_set_epoch, *labels)
        lags = self._lags(broker_set)
        for broker_id in sorted(known.broker_ids):
            yield metrics.CONTROLLER_BROKER_ALIVE.of(broker_id in living, *labels, broker_id)
            if broker_id in lags:
                yield metrics.CONTROLLER_BROKER_LAG_BYTES.of(lags[broker_id], *labels, broker_id)

    def _lags(self, broker_set: BrokerSet) -> Mapping[int, int]:
        """By how much the logs of the living are shorter than that of a living master."""
        said = {each.broker_id: each for each in self._sets.local(broker_set).heartbeats}
        master = said.get(broker_set.variables.master)
        if master is None or master.max_offset is None:
            return {}
        return {
            broker_id: max(0, master.max_offset - each.max_offset)
            for broker_id, each in said.items()
            if broker_id is not None and each.max_offset is not None
        }

    # The page

    @property
    def has_picture(self) -> bool:
        """See `RoleView`."""
        return True

    def picture(self) -> Mapping[str, object]:
        """See `RoleView`."""
        known = self._log.standing()
        sets = sorted(self._sets, key=lambda each: (each.variables.cluster_name, each.name))
        return {
            "member": self._options.controller_d_leger_self_id,
            "group": self._options.controller_d_leger_group,
            "address": self.address,
            "role": known.role,
            "leader": known.leader,
            "term": known.term,
            "commit": known.commit,
            "applied": known.applied,
            "members": {each: known.lags.get(each) for each in known.members},
            "ended": self.ended,
            "sets_left_out": max(0, len(sets) - SETS_SHOWN_MAX),
            "sets": [self._set(each) for each in sets[:SETS_SHOWN_MAX]],
        }

    def _set(self, broker_set: BrokerSet) -> Mapping[str, object]:
        known, living = broker_set.variables, self._sets.local(broker_set).living
        lags = self._lags(broker_set)
        return {
            "cluster": known.cluster_name,
            "name": broker_set.name,
            "master": known.master,
            "master_epoch": known.master_epoch,
            "sync_state_set_epoch": known.sync_state_set_epoch,
            "brokers": [
                {
                    "id": broker_id,
                    "address": known.addresses.get(broker_id, ""),
                    "is_master": broker_id == known.master,
                    "in_sync": broker_id in known.sync_state_set,
                    "alive": broker_id in living,
                    "lag_bytes": lags.get(broker_id),
                }
                for broker_id in sorted(known.broker_ids)
            ],
        }


def _number_of(known: LogStanding) -> int:
    """A role as it is numbered in metrics."""
    return ("unknown", "candidate", "follower", "leader").index(known.role)
