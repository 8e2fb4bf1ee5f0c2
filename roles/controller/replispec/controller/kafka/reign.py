"""One time in office: what is seen of the store becomes decisions, decisions become changes and commands.

The order of a new controller is that of the machine `cluster_controller`. Source: Kafka replication, detailed
design V3, procedures A, B, D, F, H; apache/kafka 2.8.2, KafkaController.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from replispec.controller.kafka.core.cluster import Cluster, KnownTopic
from replispec.controller.kafka.core.commands import BrokerCommands
from replispec.controller.kafka.core.partition import LedPartition, PartitionKey
from replispec.controller.kafka.deletions import TopicDeletions
from replispec.controller.kafka.leaders import Leaders
from replispec.controller.kafka.links import BrokerLinks
from replispec.controller.kafka.moves import PartitionMoves
from replispec.controller.kafka.profiles import ReplicationProfile
from replispec.controller.kafka.seeing_store import StoreWatch
from replispec.controller.kafka.store import FencedStore
from replispec.runtime.kafka.stores.forms import LiveBroker
from replispec.runtime.primitives.exchanges import Message
from replispec.runtime.world import Level, Outbox
from replispec.wire.kafka.codes import ErrorCode
from replispec.wire.kafka.machines import partition as partition_machine
from replispec.wire.kafka.machines.partition import State
from replispec.wire.kafka.options import KafkaControllerOptions

_KNOWN = (ErrorCode.NONE, ErrorCode.STALE_EPOCH)
"""What brokers answer to commands that they carried out, or had heard before."""


class Reign:
    """Everything that one controller knows and does. `whole` is told once it has read all."""

    def __init__(
        self,
        outbox: Outbox,
        options: KafkaControllerOptions,
        store: FencedStore,
        links: BrokerLinks,
        profile: ReplicationProfile,
        whole: Callable[[], None],
    ) -> None:
        self._outbox = outbox
        self._options = options
        self._store = store
        self._links = links
        self._whole = whole
        self.cluster = Cluster(profile.store)
        commands = profile.commands(self.cluster, store.epoch)
        self._commands = BrokerCommands(self.cluster, commands, self)
        self.leaders = Leaders(outbox, store, self.cluster, self._commands, self._settled)
        self._watch = StoreWatch(outbox, store, self.cluster, self.leaders, self)
        self.moves = PartitionMoves(
            outbox, store, self.cluster, self._commands, self.leaders, self._watch.look_at_topic
        )
        self._deletions = TopicDeletions(outbox, store, self.cluster, self._commands, self.moves.is_moving)
        self._is_active = False
        self._undecided: dict[PartitionKey, LedPartition] = {}
        # Brokers that have registered and are not commanded yet, and those that had before.
        self._arrived: dict[int, LiveBroker] = {}
        self._returned: set[int] = set()
        self._look_at_ms = 0
        self._wanted_deletions: Sequence[str] = ()

    @property
    def is_active(self) -> bool:
        """Whether it decides."""
        return self._is_active

    def begin(self) -> None:
        """Read everything."""
        self._watch.begin()

    def end(self) -> None:
        """Decide nothing more."""
        self._store.end()
        self._links.drop_all()

    # What the machine of the office wants of a new controller, in its order

    def tell_everything(self) -> None:
        """Connect to all brokers: each is told all that is on record."""
        self._is_active = True
        self._deletions.wanted(self._wanted_deletions)

    def change_leaders(self) -> None:
        """Go by who lives; partitions without a record are led, too."""
        self._decide_all()

    def move_replicas(self) -> None:
        """Go on with partitions that move."""
        self.moves.unfinished()

    # What is seen

    def whole(self) -> None:
        """See `ToldOfStore`."""
        self._whole()

    def broker_came(self, broker: LiveBroker) -> None:
        """See `ToldOfStore`."""
        known = self.cluster.brokers.get(broker.broker_id)
        self._arrived[broker.broker_id] = broker
        if not self._is_active:
            return
        if known is not None and known.epoch != broker.epoch:
            # It was gone in between, and may have lost what it had not flushed: others lead first.
            self._left(broker.broker_id)
            self._returned.add(broker.broker_id)
        self._outbox.note(Level.INFO, "broker lives", broker=broker.broker_id, address=broker.address)

    def broker_left(self, broker_id: int) -> None:
        """See `ToldOfStore`."""
        self._arrived.pop(broker_id, None)
        self._returned.discard(broker_id)
        if self._is_active and broker_id in self.cluster.brokers:
            self._outbox.note(Level.WARNING, "broker gone", broker=broker_id)
            self._left(broker_id)

    def partition_came(self, one: LedPartition) -> None:
        """See `ToldOfStore`."""
        self._undecided[one.key] = one

    def topic_left(self, topic: KnownTopic) -> None:
        """See `ToldOfStore`: without a wish its replicas are deleted all the same."""
        self.leaders.forget(topic.name)
        for one in topic.partitions.values():
            self._undecided.pop(one.key, None)
            if topic.is_deleted or one.state is State.NONEXISTENT:
                continue
            assigned = one.assigned
            effects = one.take(partition_machine.TopicDeleted())
            if "send_stop_replica" in effects:
                self._commands.announce_deletion((one,))
                for broker_id in assigned:
                    self._commands.stop(broker_id, (one,))

    def deletions_wanted(self, topics: Sequence[str]) -> None:
        """See `ToldOfStore`."""
        self._wanted_deletions = topics
        if self._is_active:
            self._deletions.wanted(topics)

    def moves_wanted(self, data: bytes | None, version: int) -> None:
        """See `ToldOfStore`."""
        self.moves.wanted(data, version)

    def record_changed(self, one: LedPartition) -> None:
        """See `ToldOfStore`: others are told where it is, and who waits for its ISR looks."""
        self._undecided[one.key] = one

    # What is decided

    def settle(self, now_ms: int) -> None:
        """Decide, write and command what the event wants, all at once."""
        if not self._is_active or self._store.is_over:
            return
        self._welcome(self._arrived.keys() - self._returned, now_ms)
        self._decide()
        # Who was gone in between comes after others lead what it led.
        self._welcome(self._returned, now_ms)
        self._decide()
        is_agents_turn = now_ms >= self._look_at_ms
        if is_agents_turn:
            self._look_at_ms = now_ms + self._options.reassignment_interval_ms
        self.moves.go_on()
        self._deletions.go_on(is_agents_turn=is_agents_turn)
        self.leaders.flush()
        self._command(now_ms)

    def deadline_ms(self) -> int | None:
        """When the agent looks."""
        return self._look_at_ms if self._is_active else None

    def _welcome(self, brokers: Collection[int], now_ms: int) -> None:
        """Command brokers that have come, those that are back once nothing that they had is being written."""
        for broker_id in sorted(brokers):
            if broker_id in self._returned and any(one.is_writing for one in self._of(broker_id)):
                continue
            broker = self._arrived.pop(broker_id)
            self._returned.discard(broker_id)
            self.cluster.brokers[broker_id] = broker
            self.cluster.told += 1
            self._links.open(broker_id, broker.address, now_ms)
            self._commands.begin(broker_id)
            self._deletions.broker_came(broker_id)
            self.moves.broker_came(broker_id)
            self._undecided |= {one.key: one for one in self._of(broker_id)}

    def _left(self, broker_id: int) -> None:
        del self.cluster.brokers[broker_id]
        self.cluster.told += 1
        self._links.drop(broker_id)
        self._commands.end(broker_id)
        self._undecided |= {one.key: one for one in self._of(broker_id)}

    def _of(self, broker_id: int) -> Iterable[LedPartition]:
        return (one for one in self.cluster.partitions() if broker_id in one.assigned)

    def _decide_all(self) -> None:
        self._undecided = {one.key: one for one in self.cluster.partitions()}

    def _decide(self) -> None:
        waiting, self._undecided = self._undecided, {}
        ready = []
        for key, one in waiting.items():
            topic = self.cluster.topics.get(key[0])
            if topic is None or topic.is_deleted or topic.partitions.get(key[1]) is not one:
                continue
            if one.is_writing:
                self._undecided[key] = one
            elif not one.is_broken:
                ready.append(one)
        live, unclean = self.cluster.live, self._options.unclean_leader_election_enable
        self.leaders.decide(ready, live, unclean=unclean)

    def _settled(self, one: LedPartition) -> None:
        self._undecided[one.key] = one

    def _command(self, now_ms: int) -> None:
        for broker_id in self._commands.waiting():
            if self._links.is_idle(broker_id):
                self._links.send(broker_id, self._commands.take(broker_id), now_ms)

    # What brokers answer

    def stopped(self, broker_id: int, answer: Message) -> None:
        """See `ToldOfAnswers`."""
        errors = self._errors(broker_id, answer)
        self._deletions.stopped(broker_id, errors)
        self.moves.stopped(broker_id, errors)

    def led(self, broker_id: int, answer: Message) -> None:
        """See `ToldOfAnswers`."""
        self._errors(broker_id, answer)

    def _errors(self, broker_id: int, answer: Message) -> dict[PartitionKey, int]:
        """What a broker answered of each partition; what it did not carry out is noted."""
        error, errors = self._commands.errors(answer)
        failed = {each for each in (error, *errors.values()) if each not in _KNOWN}
        if failed:
            self._outbox.note(Level.WARNING, "broker refuses", broker=broker_id, errors=sorted(failed))
        return errors
