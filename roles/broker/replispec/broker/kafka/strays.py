"""Logs that the store assigns to others: their partitions moved, or their topics went, while nobody could
tell this broker to give them up.

A topic is watched as long as this broker has a log of it. Each change has the store asked anew, and what it
says counts for a replica that was not commanded since. Source: Kafka replication, detailed design V3, "Broker
startup".
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from replispec.broker.kafka.commands import ControllerCommands
from replispec.broker.kafka.core.replica import ReplicaKey
from replispec.broker.kafka.replicas import LocalReplicas
from replispec.runtime.kafka.log import LogFolder
from replispec.runtime.kafka.stores.forms import Replicas, StoreForm
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.world import Level, Outbox
from replispec.runtime.zookeeper.client import MetastoreAnswer, MetastoreClient, SeenNode, Watching
from replispec.wire.zookeeper.codes import ErrorCode
from replispec.wire.zookeeper.operations import GetDataRequest


class StrayLogs:
    """Finds them; `commands` gives them up."""

    def __init__(
        self,
        outbox: Outbox,
        client: MetastoreClient,
        form: StoreForm,
        replicas: LocalReplicas,
        folder: LogFolder,
        commands: ControllerCommands,
    ) -> None:
        self._outbox = outbox
        self._client = client
        self._form = form
        self._replicas = replicas
        self._folder = folder
        self._commands = commands
        self._watched: dict[str, Watching] = {}
        commands.made = self.watch

    def watch_all(self) -> None:
        """Watch the topics of all logs that there are."""
        for topic in dict.fromkeys(topic for topic, _ in self._folder.logs):
            self.watch(topic)

    def watch(self, topic: str) -> None:
        """Watch a topic of which there is a log: whoever commanded it may have been late."""
        if topic not in self._watched:
            watching = self._client.watch(self._form.topic(topic), partial(self._seen, topic))
            self._watched[topic] = watching

    def _seen(self, topic: str, _node: SeenNode) -> None:
        epochs = {key: self._replicas.epoch_of(key) for key in self._folder.logs if key[0] == topic}
        if not epochs:
            self._watched.pop(topic).stop()
            return
        self._client.read(GetDataRequest(self._form.topic(topic), False), partial(self._read, epochs))

    def _read(self, epochs: Mapping[ReplicaKey, int], answer: MetastoreAnswer) -> None:
        if answer.error not in (ErrorCode.OK, ErrorCode.NO_NODE):
            # On the next connection all that is watched is looked at.
            return
        assigned: Replicas = {}
        if answer.error == ErrorCode.OK:
            try:
                assigned = self._form.read_topic(getattr(answer.message, "data", None) or b"").replicas
            except RemoteProtocolError as error:
                self._outbox.note(Level.WARNING, "node not understood", kind="topic", reason=str(error))
                return
        for key, epoch in epochs.items():
            if self._replicas.broker_id not in assigned.get(key[1], ()):
                self._commands.leave_out(key, epoch)
