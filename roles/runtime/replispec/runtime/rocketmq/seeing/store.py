"""What everybody who keeps a commit log shows of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Final, Protocol

from replispec.runtime.primitives.metrics import Sample
from replispec.runtime.rocketmq.log import MessageStore, Retention
from replispec.runtime.rocketmq.remoting import RequestServer
from replispec.runtime.rocketmq.seeing.view import NodeView
from replispec.runtime.world import ReadyCheck
from replispec.wire.rocketmq import metrics

_PROTOCOL: Final = "remoting"


class BrokerNames(Protocol):
    """What is configured of a broker's name."""

    @property
    def broker_cluster_name(self) -> str:
        """The cluster."""
        ...

    @property
    def broker_name(self) -> str:
        """The broker set."""
        ...


class StoreView(NodeView, ABC):
    """Who it is, and its log, of everybody with a broker's id and a store."""

    def __init__(
        self, role: str, server: RequestServer, names: BrokerNames, store: MessageStore, retention: Retention
    ) -> None:
        super().__init__(role, server, metrics.RPC_LATENCY)
        self._names = names
        self._store = store
        self._retention = retention

    @property
    @abstractmethod
    def broker_id(self) -> int:
        """Its id now."""

    def who(self) -> Mapping[str, object]:
        """See `RoleView`."""
        return {"broker_name": self._names.broker_name, "broker_id": self.broker_id, "port": self.port}

    def began(self) -> Mapping[str, object]:
        """See `RoleView`."""
        last = self._store.epochs.last
        log_epoch = 0 if last is None else last.epoch
        return {**super().began(), "log_end": self._store.log.end, "log_epoch": log_epoch}

    def shared(self) -> Mapping[str, str]:
        """See `RoleView`."""
        return {
            **super().shared(),
            "cluster": self._names.broker_cluster_name,
            "node_type": self.role,
            "node_id": self._names.broker_name,
        }

    def store_check(self) -> ReadyCheck:
        """Whether the log takes what it must."""
        broken = self._store.log.broken
        return ReadyCheck("store", not broken, broken or f"{self._retention.percent} % of the disk are used")

    def log_samples(self, confirmed: int) -> Iterator[Sample]:
        """The log as it is now; `confirmed` is the confirmOffset."""
        log, last = self._store.log, self._store.epochs.last
        place = "local", "disk"
        yield metrics.STORAGE_SIZE.of(log.end - log.first, *place)
        yield metrics.STORAGE_FLUSH_BEHIND_BYTES.of(max(0, log.end - log.flushed), *place)
        yield metrics.STORAGE_DISPATCH_BEHIND_BYTES.of(max(0, log.end - confirmed), *place)
        yield metrics.BROKER_ID.of(self.broker_id)
        yield metrics.LOG_FIRST_OFFSET.of(log.first)
        yield metrics.LOG_END_OFFSET.of(log.end)
        yield metrics.LOG_FLUSHED_OFFSET.of(log.flushed)
        yield metrics.LOG_EPOCH.of(0 if last is None else last.epoch)
        yield metrics.CONFIRM_OFFSET.of(confirmed)
        yield metrics.LOG_DISK_USED_PERCENT.of(self._retention.percent)
        yield metrics.LOG_DISK_FULL.of(self._retention.is_full)
        for (request, code, is_held, result), histogram in self.took():
            said = request.lower(), code.lower(), flag(is_held), result
            yield metrics.RPC_LATENCY.of(histogram, _PROTOCOL, *said)


def flag(value: bool) -> str:
    """How Apache RocketMQ says yes and no."""
    return str(value).lower()
