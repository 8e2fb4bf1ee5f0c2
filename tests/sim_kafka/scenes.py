"""A cluster of partitions to which nothing happens but what a scenario says."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from replispec.runtime.sim import NetworkConditions, Pace
from replispec.runtime.world import Note
from tests.sim_kafka.cluster import CONTROLLERS, StoredPartition
from tests.sim_kafka.history import PartitionName
from tests.sim_kafka.run import PartitionsResult, PartitionsRun
from tests.sim_kafka.settings import PartitionsSettings
from tests.sim_kafka.wishes import TopicWish

KEY: PartitionName = ("kept", 0)
PATIENCE_MS = 20_000


class PartitionsScene(PartitionsRun):
    """Three brokers unless said otherwise, a topic of one partition that all have, its first one leads."""

    def __init__(self, generation: str = "2.2", *, seed: int = 1, brokers: int = 3) -> None:
        settings = PartitionsSettings(brokers=brokers, generation=generation)
        calm = (NetworkConditions(spike_per_mille=0, slow_per_mille=0), Pace(slow_write_per_mille=0))
        super().__init__(seed, settings, conditions=calm[0], pace=calm[1])
        self.told: list[tuple[str, str]] = []
        cluster, world = self.cluster, self.cluster.world
        cluster.start()
        world.run_for(3_000)
        self.make("kept", list(cluster.brokers)[:3])
        self.until(lambda: len(self.cluster.history.acknowledged) > 5)

    def hear(self, name: str, note: Note) -> None:
        """See `PartitionsRun`."""
        super().hear(name, note)
        self.told.append((name, note.what))

    @property
    def record(self) -> StoredPartition:
        """What the store holds of the partition."""
        return self.cluster.stored[KEY]

    @property
    def controller(self) -> str:
        """The process that is in office."""
        for name in CONTROLLERS:
            for node in self.cluster.world.processes[name].nodes:
                if getattr(node, "reign", None) is not None:
                    return name
        return CONTROLLERS[0]

    @property
    def acknowledged(self) -> int:
        """How many records were acknowledged by all."""
        return len(self.cluster.history.acknowledged)

    def name(self, broker_id: int) -> str:
        """The process of a broker."""
        return self.cluster.brokers[broker_id]

    def make(self, topic: str, *replicas: Sequence[int]) -> None:
        """Have a topic made, and wait until it is led."""
        self.wish(TopicWish("create", topic, replicas))
        self.until(lambda: self.cluster.stored.get((topic, 0), self.nothing).leader >= 0)

    nothing = StoredPartition(0, (), moves=False)

    def wish(self, *wishes: TopicWish) -> None:
        """Wish something."""
        self.cluster.administrator.wishes.extend(wishes)

    def until(self, is_so: Callable[[], bool], *, step_ms: int = 10) -> None:
        """Let time pass until something is so."""
        assert self.cluster.world.run_until(is_so, at_most_ms=PATIENCE_MS, step_ms=step_ms)

    def run_for(self, milliseconds: int) -> None:
        """Let time pass."""
        self.cluster.world.run_for(milliseconds)

    def more(self, count: int = 5) -> None:
        """Wait until so many more records were acknowledged."""
        before = self.acknowledged
        self.until(lambda: self.acknowledged >= before + count)

    def cut(self, sources: Sequence[str], targets: Sequence[str]) -> None:
        """What these send does not reach those until the network heals."""
        for source in sources:
            for target in targets:
                self.cluster.world.network.block(source, target)

    def end(self) -> PartitionsResult:
        """Heal the network, start all that does not run, wait until all is whole; nothing is wrong then."""
        self.nemesis.heal()
        result = self.ended()
        assert result.wrong == [], result
        return result
