"""What must be so at every moment: of the records in the store, and of the brokers' replicas.

A broken promise becomes a fault, once. Where records may be lost, as after an unclean election, or where
followers cut to the high watermark, that of the partition is noted instead.
"""

from __future__ import annotations

from replispec.runtime.sim.process import Life
from replispec.runtime.world import Note
from replispec.wire.kafka.constants import NO_LEADER
from tests.sim.history import Moment
from tests.sim_kafka.cluster import METASTORE, PartitionsCluster, StoredPartition
from tests.sim_kafka.history import PartitionName, RecordPlace

Generation = tuple[PartitionName, int]
"""A partition, and the generation of its topic."""
FAULTS_MAX = 30


class PartitionsWatch:
    """`unclean`: partitions of which an unclean election was told; `cut`: those of which a broker cut records
    that were acknowledged."""

    def __init__(self, cluster: PartitionsCluster) -> None:
        self.unclean: set[PartitionName] = set()
        self.cut: set[PartitionName] = set()
        self.refused: set[PartitionName] = set()
        self.elections = 0
        self.isr_changes = 0
        self._cluster = cluster
        self._names = {name: number for number, name in cluster.brokers.items()}
        self._leaders: dict[tuple[PartitionName, int, int], int] = {}
        # Of each replica of a life: its log, where that ended, its epoch and its high watermark.
        self._seen: dict[tuple[int, PartitionName], tuple[object, int, int, int]] = {}
        self._zxid = 0

    @property
    def faults(self) -> list[str]:
        """What was wrong."""
        return self._cluster.history.faults

    def fault(self, what: str) -> None:
        """Something is not as was promised."""
        at_ms = self._cluster.world.now_us // 1_000
        if len(self.faults) < FAULTS_MAX and not any(what in each for each in self.faults):
            self._cluster.world.trace("watch", f"wrong: {what}")
            self.faults.append(f"{at_ms} ms: {what}")

    def may_lose(self, key: PartitionName) -> bool:
        """Whether acknowledged records of a partition may be gone."""
        return key in self.unclean or (key in self.cut and not self._cluster.settings.cuts_by_epoch)

    # What is told

    def hear(self, note: Note) -> None:
        """Read one line of the log of a process."""
        values = note.values
        if note.what == "unclean election":
            self.unclean.add((str(values["topic"]), int(str(values["partition"]))))
        elif note.what == "reassignment refused":
            self.refused.add((str(values["topic"]), int(str(values["partition"]))))

    def misread(self, broker_id: int, at: RecordPlace, what: str) -> None:
        """A consumer was given what it should not have been given. Whoever leads no more may say anything of
        where its log ends."""
        node = self._cluster.node(broker_id)
        replica = None if node is None else node.replicas.by_key.get(at.key)
        known = self._cluster.stored.get(at.key)
        leads = known is not None and replica is not None and replica.leads
        is_newest = leads and replica.known.leader_epoch == known.epoch  # type: ignore[union-attr]
        if not self.may_lose(at.key) and (is_newest or what != "out of range"):
            self.fault(f"a consumer of {at.key} at {at.offset} was told {what} by {broker_id}")

    def acknowledged(self, place: RecordPlace) -> None:
        """A record was acknowledged: all of the ISR have it."""
        known = self._cluster.stored.get(place.key)
        if known is not None and known.generation == place.generation:
            self._check_members(place.key, known)

    # What is looked at

    def look(self, life: Life) -> None:
        """A process has taken an event."""
        name = life.process.name
        if name == METASTORE:
            before = self._cluster.stored
            if self._cluster.look_at_store():
                self._look_at_records(before)
        elif name in self._names and life in life.process.lives:
            self._look_at_broker(self._names[name], life)

    def _look_at_records(self, before: dict[PartitionName, StoredPartition]) -> None:
        zxid = self._cluster.tree.zxid
        if zxid < self._zxid:
            self.fault(f"the store forgot what came after {zxid}")
        self._zxid = zxid
        for key, new in self._cluster.stored.items():
            old = before.get(key)
            if new != old and new.version >= 0:
                known = old if old is not None and old.generation == new.generation else None
                self._look_at_record(key, known, new)

    def _look_at_record(self, key: PartitionName, old: StoredPartition | None, new: StoredPartition) -> None:
        if not set(new.isr) <= set(new.assigned):
            self.fault(f"{key}: ISR {new.isr} is not within {new.assigned}")
        if new.leader not in (NO_LEADER, *new.isr):
            self.fault(f"{key}: the leader {new.leader} is not in the ISR {new.isr}")
        if not new.isr:
            self.fault(f"{key}: the ISR is empty")
        if old is not None and old.version >= 0:
            if (new.epoch, new.decided_by, new.version) < (old.epoch, old.decided_by, old.version):
                self.fault(f"{key}: the record went back from {old} to {new}")
            if new.version == old.version and (new.leader, new.isr) != (old.leader, old.isr):
                self.fault(f"{key}: the record changed without a version: {old}, {new}")
            if new.leader != old.leader:
                self.elections += 1
            elif new.isr != old.isr:
                self.isr_changes += 1
                self._cluster.history.tell(Moment.CHANGES)
        if new.leader != NO_LEADER:
            leads = self._leaders.setdefault((key, new.generation, new.epoch), new.leader)
            if leads != new.leader:
                self.fault(f"{key}: {leads} and {new.leader} lead in epoch {new.epoch}")
        self._check_members(key, new)

    def _check_members(self, key: PartitionName, known: StoredPartition) -> None:
        """Each member of the ISR has every record that was acknowledged. Who cuts to the high watermark lacks
        some for a while."""
        least = self._cluster.history.ends.get((key, known.generation), 0)
        if self.may_lose(key) or not least or not self._cluster.settings.cuts_by_epoch:
            return
        if key[0] in self._cluster.going:
            return
        for member in known.isr:
            end = self._cluster.end_of(member, key)
            if end < least:
                self.fault(f"{key}: {member} is in the ISR {known.isr} and ends at {end}, not at {least}")

    def _look_at_broker(self, broker_id: int, life: Life) -> None:
        node = life.node
        for key, replica in node.replicas.by_key.items():  # type: ignore[attr-defined]
            log = replica.log
            if log is None:
                continue
            epoch = replica.known.leader_epoch if replica.leads else -1
            now = (log, log.end, epoch, log.high_watermark)
            before = self._seen.get((broker_id, key))
            if now == before:
                continue
            self._seen[broker_id, key] = now
            self._look_at_replica(broker_id, key, before)

    def _look_at_replica(
        self,
        broker_id: int,
        key: PartitionName,
        before: tuple[object, int, int, int] | None,
    ) -> None:
        log, end, epoch, mark = self._seen[broker_id, key]
        if mark > end:
            self.fault(f"{key} at {broker_id}: high watermark {mark} behind the end {end}")
        known = self._cluster.stored.get(key)
        if before is not None and before[0] is log:
            if epoch >= 0 and before[2] == epoch and mark < before[3]:
                self.fault(f"{key} at {broker_id}: high watermark fell from {before[3]} to {mark}")
            acknowledged = 0
            if known is not None:
                acknowledged = self._cluster.history.ends.get((key, known.generation), 0)
            if end < before[1] and end < acknowledged:
                self._cut(broker_id, key, end, acknowledged)
        if epoch < 0 or known is None or key[0] in self._cluster.going:
            return
        self._look_at_leader(broker_id, key, epoch, mark, known)

    def _cut(self, broker_id: int, key: PartitionName, end: int, acknowledged: int) -> None:
        known = self._cluster.stored[key]
        if broker_id not in known.isr or self.may_lose(key) or key[0] in self._cluster.going:
            # Who is in no ISR copies from whoever is.
            return
        self.cut.add(key)
        if self._cluster.settings.cuts_by_epoch:
            self.fault(f"{key} at {broker_id}: cut to {end}, below {acknowledged}, which was acknowledged")

    def _look_at_leader(
        self, broker_id: int, key: PartitionName, epoch: int, mark: int, known: StoredPartition
    ) -> None:
        who = self._leaders.get((key, known.generation, epoch))
        if epoch == known.epoch and known.leader != broker_id and who != broker_id:
            self.fault(f"{key}: {broker_id} leads in epoch {epoch}, {known.leader} does by the record")
        cuts_by_epoch = self._cluster.settings.cuts_by_epoch
        if epoch == known.epoch and known.leader == broker_id and cuts_by_epoch and not self.may_lose(key):
            ends = {each: self._cluster.end_of(each, key) for each in known.isr}
            if mark > min(ends.values(), default=mark):
                self.fault(f"{key} at {broker_id}: high watermark {mark}, the ISR ends at {ends}")
