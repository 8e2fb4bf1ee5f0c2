"""What each broker is still to be told: the newest of every partition, made into requests when it listens.

A round is told in this order: who lives, who leads, who is where, what is to be deleted. A partition that is
to be deleted and then led again takes two rounds. Source: apache/kafka 2.8.2, ControllerBrokerRequestBatch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from replispec.controller.kafka.core.cluster import Cluster
from replispec.controller.kafka.core.partition import LedPartition, PartitionKey
from replispec.controller.kafka.links import BrokerCommand
from replispec.runtime.kafka.stores.forms import LiveBroker
from replispec.runtime.primitives.exchanges import Message


@dataclass(slots=True, eq=False)
class CommandRound:
    """What is told at once: who leads, where partitions are, that some are no more, replicas to delete."""

    led: dict[PartitionKey, LedPartition] = field(default_factory=dict)
    shown: dict[PartitionKey, LedPartition] = field(default_factory=dict)
    gone: dict[PartitionKey, LedPartition] = field(default_factory=dict)
    stopped: dict[PartitionKey, LedPartition] = field(default_factory=dict)


class ToldOfAnswers(Protocol):
    """Whoever wants to know what brokers answer."""

    def stopped(self, broker_id: int, answer: Message) -> None:
        """A broker answered about replicas that it was to delete."""
        ...

    def led(self, broker_id: int, answer: Message) -> None:
        """A broker answered about who leads."""
        ...


class CommandForm(Protocol):
    """In which messages brokers are commanded."""

    def requests(
        self,
        broker: LiveBroker,
        one: CommandRound,
        told: ToldOfAnswers,
        *,
        is_first: bool,
        who_lives_changed: bool,
    ) -> Sequence[BrokerCommand]:
        """The requests of a round, in order. `is_first`: it is the first one for a broker since it registered
        or the controller began; then it names all replicas of the broker."""
        ...

    def errors(self, answer: Message) -> tuple[int, dict[PartitionKey, int]]:
        """The error of all of an answer, and those of its partitions."""
        ...


@dataclass(slots=True, eq=False)
class _Waiting:
    """What one broker is to be told. `told`: what it knows of who lives; see `Cluster.told`."""

    rounds: deque[CommandRound] = field(default_factory=lambda: deque([CommandRound()]))
    told: int = -1


class BrokerCommands:
    """For all brokers; `told` hears what they answer."""

    def __init__(self, cluster: Cluster, form: CommandForm, told: ToldOfAnswers) -> None:
        self._cluster = cluster
        self._form = form
        self._told = told
        self._waiting: dict[int, _Waiting] = {}

    def begin(self, broker_id: int) -> None:
        """A broker has registered: it is told everything."""
        waiting = self._waiting[broker_id] = _Waiting()
        first = waiting.rounds[0]
        for partition in self._cluster.partitions():
            if partition.record is not None:
                first.shown[partition.key] = partition
                if broker_id in partition.assigned:
                    first.led[partition.key] = partition

    def end(self, broker_id: int) -> None:
        """A broker is gone."""
        self._waiting.pop(broker_id, None)

    def lead(self, partition: LedPartition) -> None:
        """Those who have a replica of a partition are to be told its record, and everybody where it is."""
        for broker_id in partition.assigned:
            waiting = self._waiting.get(broker_id)
            if waiting is not None:
                if partition.key in waiting.rounds[-1].stopped:
                    waiting.rounds.append(CommandRound())
                waiting.rounds[-1].led[partition.key] = partition
        self.show(partition)

    def show(self, partition: LedPartition) -> None:
        """Everybody is to be told where a partition is."""
        for waiting in self._waiting.values():
            waiting.rounds[-1].gone.pop(partition.key, None)
            waiting.rounds[-1].shown[partition.key] = partition

    def announce_deletion(self, partitions: Iterable[LedPartition]) -> None:
        """Everybody is to be told that these are no more."""
        for partition in partitions:
            for waiting in self._waiting.values():
                waiting.rounds[-1].shown.pop(partition.key, None)
                waiting.rounds[-1].gone[partition.key] = partition

    def stop(self, broker_id: int, partitions: Iterable[LedPartition]) -> None:
        """A broker is to delete its replicas of these."""
        waiting = self._waiting.get(broker_id)
        if waiting is not None:
            waiting.rounds[-1].stopped |= {each.key: each for each in partitions}

    def waiting(self) -> Sequence[int]:
        """The brokers that are to be told something."""
        return [broker_id for broker_id, each in self._waiting.items() if self._has_news(each)]

    def take(self, broker_id: int) -> Sequence[BrokerCommand]:
        """The requests of the next round for a broker, in order; nothing more is remembered of them."""
        waiting, broker = self._waiting[broker_id], self._cluster.brokers[broker_id]
        one = waiting.rounds.popleft()
        if not waiting.rounds:
            waiting.rounds.append(CommandRound())
        is_first, changed = waiting.told < 0, waiting.told != self._cluster.told
        waiting.told = self._cluster.told
        return self._form.requests(broker, one, self._told, is_first=is_first, who_lives_changed=changed)

    def errors(self, answer: Message) -> tuple[int, dict[PartitionKey, int]]:
        """What a broker answered: of all of it, and of each partition; 0 each where it was carried out."""
        return self._form.errors(answer)

    def _has_news(self, waiting: _Waiting) -> bool:
        one = waiting.rounds[0]
        return bool(one.led or one.shown or one.gone or one.stopped) or waiting.told != self._cluster.told
