"""The ISR of what this broker leads: changed in the store by version, and the controller told of it.

Source: Kafka replication, detailed design V3, maybe_change_ISR; apache/kafka 2.8.2, Partition, ZkIsrManager.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from replispec.broker.kafka.core.replica import LocalReplica, ReplicaKey
from replispec.broker.kafka.replicas import LocalReplicas
from replispec.runtime.kafka.stores.forms import SaidRecord, StoreForm
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.world import Level, Outbox
from replispec.runtime.zookeeper.client import MetastoreAnswer, MetastoreClient
from replispec.wire.kafka import paths
from replispec.wire.kafka.constants import ISR_NOTICE_MS, ISR_NOTICE_VERSION
from replispec.wire.kafka.machines import replica as machine
from replispec.wire.kafka.nodes import ApacheIsrChangeNode, ApacheTopicPartition
from replispec.wire.zookeeper.codes import CreateFlags, ErrorCode
from replispec.wire.zookeeper.operations import GetDataRequest


class IsrKeeper:
    """Changes ISRs. `lag_ms`: how long a follower may be behind."""

    def __init__(
        self,
        outbox: Outbox,
        client: MetastoreClient,
        form: StoreForm,
        replicas: LocalReplicas,
        lag_ms: int,
        now_ms: Callable[[], int],
    ) -> None:
        self._outbox = outbox
        self._client = client
        self._form = form
        self._replicas = replicas
        self._lag_ms = lag_ms
        self._now_ms = now_ms
        self._look_at_ms = 0
        self._notice_at_ms = 0
        self._changed: set[ReplicaKey] = set()
        self.changes = 0

    def deadline_ms(self) -> int:
        """When it looks again."""
        return min(self._look_at_ms, self._notice_at_ms) if self._changed else self._look_at_ms

    def ticked(self, now_ms: int) -> None:
        """Look who lags, and tell the controller what has changed."""
        if now_ms >= self._look_at_ms:
            self._look_at_ms = now_ms + max(self._lag_ms // 2, 1)
            for each in self._replicas.led():
                wanted = each.shrunk(now_ms, self._lag_ms)
                if wanted is not None:
                    self.want(each, wanted)
        if self._changed and now_ms >= self._notice_at_ms:
            self._notice_at_ms = now_ms + ISR_NOTICE_MS
            self._tell()

    def want(self, replica: LocalReplica, members: frozenset[int]) -> None:
        """Ask the store for another ISR, one change of a partition at a time."""
        if replica.is_writing or not self._client.session.is_connected:
            return
        effects = replica.take(machine.IsrWanted(members))
        if "write_isr" not in effects:
            return
        replica.is_writing = True
        known = replica.known
        order = [each for each in replica.assigned if each in members]
        said = SaidRecord(known.leader, known.leader_epoch, order, replica.decided_by)
        asked = (known.leader_epoch, tuple(order), known.version + 1)
        written = partial(self._written, replica, asked)
        self._client.set_data(
            self._form.record(*replica.key), self._form.record_node(said), known.version, written
        )

    def _written(
        self, replica: LocalReplica, asked: tuple[int, tuple[int, ...], int], answer: MetastoreAnswer
    ) -> None:
        if answer.error == ErrorCode.OK:
            self.changes += 1
            self._decided(replica, machine.IsrDecided(*asked))
            if self._form.isr_changes is not None:
                self._changed.add(replica.key)
        else:
            # Refused, or nobody knows: what the store says counts.
            asked_for = GetDataRequest(self._form.record(*replica.key), False)
            self._client.read(asked_for, partial(self._read, replica))

    def _read(self, replica: LocalReplica, answer: MetastoreAnswer) -> None:
        stat = getattr(answer.message, "stat", None)
        if answer.error != ErrorCode.OK or stat is None:
            replica.is_writing = False
            return
        try:
            found = self._form.read_record(getattr(answer.message, "data", None) or b"")
        except RemoteProtocolError as error:
            replica.is_writing = False
            self._outbox.note(
                Level.WARNING, "record not understood", partition=replica.key, reason=str(error)
            )
            return
        self._decided(replica, machine.IsrDecided(found.leader_epoch, tuple(found.isr), stat.version))

    def _decided(self, replica: LocalReplica, event: machine.IsrDecided) -> None:
        replica.is_writing = False
        if self._replicas.by_key.get(replica.key) is not replica:
            return
        if "take_isr" in replica.take(event):
            self._outbox.note(Level.INFO, "ISR", partition=replica.key, isr=list(replica.known.isr))
            replica.commit()
        self._replicas.touched.add(replica.key)

    def _tell(self) -> None:
        changed, self._changed = sorted(self._changed), set()
        node = ApacheIsrChangeNode(
            version=ISR_NOTICE_VERSION, partitions=[ApacheTopicPartition(*key) for key in changed]
        )
        prefix = paths.APACHE_ISR_CHANGE.prefix

        def told(answer: MetastoreAnswer) -> None:
            if answer.error != ErrorCode.OK:
                self._changed |= set(changed)

        self._client.create(prefix, node.encode(), told, flags=CreateFlags.PERSISTENT_SEQUENTIAL)
