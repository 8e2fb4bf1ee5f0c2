"""The broker in the store: its registration as long as its session lives, and the cluster's name.

Source: apache/kafka 2.8.2, KafkaZkClient.registerBroker, createTopLevelPaths, getOrGenerateClusterId.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import partial

from replispec.runtime.kafka.stores.forms import StoreForm
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.rng import Rng
from replispec.runtime.world import Level, Outbox
from replispec.runtime.zookeeper.client import (
    MetastoreAnswer,
    MetastoreClient,
    SeenNode,
    SessionStanding,
    Watching,
)
from replispec.wire.kafka import constants
from replispec.wire.kafka.nodes import ApacheClusterNode, DecimalNode
from replispec.wire.zookeeper.codes import CreateFlags, ErrorCode
from replispec.wire.zookeeper.operations import GetDataRequest


class BrokerRegistration:
    """Keeps one broker registered. `named` is told the name of the cluster, `controller_seen` the epoch of
    the newest controller, `now_ms` tells the time; `rng` makes the name of a new cluster."""

    def __init__(
        self,
        outbox: Outbox,
        client: MetastoreClient,
        form: StoreForm,
        broker_id: int,
        rng: Rng,
        *,
        named: Callable[[str], None],
        controller_seen: Callable[[int], None],
        now_ms: Callable[[], int],
    ) -> None:
        self._outbox = outbox
        self._client = client
        self._form = form
        self._broker_id = broker_id
        self._rng = rng
        self._named = named
        self._controller_seen = controller_seen
        self._now_ms = now_ms
        self._path = form.broker(broker_id)
        self._watching: Watching | None = None
        self._controller: Watching | None = None
        self._is_named = False
        self._try_at_ms: int | None = None
        self.host, self.port = "", 0
        self.epoch = constants.NO_BROKER_EPOCH
        """That of the registration; NO_BROKER_EPOCH while there is none."""

    @property
    def is_registered(self) -> bool:
        """Whether others can know that it lives."""
        return self.epoch != constants.NO_BROKER_EPOCH

    def deadline_ms(self) -> int | None:
        """When it tries again."""
        return self._try_at_ms

    def ticked(self, now_ms: int) -> None:
        """Try again."""
        if self._try_at_ms is not None and now_ms >= self._try_at_ms:
            self._try_at_ms = None
            if self._watching is not None:
                self._watching.look()

    def stands(self, standing: SessionStanding) -> None:
        """How its session stands has changed."""
        if standing is SessionStanding.LOST:
            self.epoch = constants.NO_BROKER_EPOCH
        elif standing is SessionStanding.CONNECTED and not self._is_named:
            self._make_parents()
            self._read_cluster()
        path = self._form.controller_epoch
        if standing is SessionStanding.CONNECTED and self._controller is None and path is not None:
            self._controller = self._client.watch(path, self._epoch_seen)

    def begin(self) -> None:
        """Register from now on: the folder is this broker's."""
        self._watching = self._client.watch(self._path, self._seen)

    def _make_parents(self) -> None:
        for each in self._form.parents:
            parts = each.split("/")[1:]
            for number in range(len(parts)):
                self._client.create("/" + "/".join(parts[: number + 1]), None, lambda _: None)

    # The cluster's name

    def _read_cluster(self) -> None:
        path = self._form.cluster
        if path is None:
            # Clusters have no names.
            self._is_named = True
            self._named("")
        else:
            self._client.read(GetDataRequest(path, False), partial(self._cluster_read, path))

    def _cluster_read(self, path: str, answer: MetastoreAnswer) -> None:
        if self._is_named:
            return
        if answer.error == ErrorCode.NO_NODE:
            chance = b"".join(self._rng.bits().to_bytes(8, "big") for _ in range(2))
            name = base64.urlsafe_b64encode(chance[: constants.CLUSTER_ID_BYTES]).decode().rstrip("=")
            node = ApacheClusterNode(version=constants.CLUSTER_NODE_VERSION, cluster_id=name)
            self._client.create(path.rpartition("/")[0], None, lambda _: None)
            self._client.create(path, node.encode(), lambda _: self._read_cluster())
        elif answer.error == ErrorCode.OK:
            try:
                found = ApacheClusterNode.decode(getattr(answer.message, "data", None) or b"").cluster_id
            except RemoteProtocolError as error:
                self._outbox.halt(f"{path}: {error}")
                return
            self._is_named = True
            self._named(found or "")

    # The controller and the broker

    def _epoch_seen(self, node: SeenNode) -> None:
        if node.stat is None:
            return
        try:
            self._controller_seen(DecimalNode.decode(node.data or b"").number)
        except RemoteProtocolError as error:
            self._outbox.note(
                Level.WARNING, "node not understood", kind="controller epoch", reason=str(error)
            )

    def _seen(self, node: SeenNode) -> None:
        if node.stat is None:
            self.epoch = constants.NO_BROKER_EPOCH
            self._register()
        elif node.stat.ephemeral_owner == self._client.session.number:
            if self.epoch != node.stat.czxid:
                self.epoch = node.stat.czxid
                self._outbox.note(Level.INFO, "registered", broker=self._broker_id, epoch=self.epoch)
        else:
            # Of a session that is over, or of another broker: its end is waited for.
            self.epoch = constants.NO_BROKER_EPOCH
            self._outbox.note(Level.WARNING, "registered by another session", broker=self._broker_id)
            self._try_at_ms = self._now_ms() + constants.REGISTRATION_RETRY_MS

    def _register(self) -> None:
        node = self._form.broker_node(self.host, self.port, self._now_ms())

        def told(answer: MetastoreAnswer) -> None:
            if self._watching is not None and answer.error in (ErrorCode.OK, ErrorCode.NODE_EXISTS):
                self._watching.look()
            else:
                self._try_at_ms = self._now_ms() + constants.REGISTRATION_RETRY_MS

        self._client.create(self._path, node, told, flags=CreateFlags.EPHEMERAL)
