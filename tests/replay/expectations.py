"""What a judge of traffic must find: rows of verdicts, and losses."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from tests.replay.pcap_writer import Packet

CONTROLLER_GROUP = "Controllers"
BROKER_NAME = "broker-a"
GROUP = f"{CONTROLLER_GROUP}/{BROKER_NAME}"
WHOLE_CAPTURE = "*"

ONE_MASTER = "one-master-per-epoch"
EPOCHS_GROW = "epochs-grow"
SET_BY_EPOCH = "set-is-function-of-epoch"
ONLY_MASTER = "only-master-alters"
ACK_WITHIN_SENT = "ack-within-sent"
OFFSET_CHAIN = "offset-chain"
BATCH_IN_EPOCH = "batch-in-one-epoch"
LEARNER_OUTSIDE = "learner-outside-set"
PAIRING = "pairing"
SEND_SURVIVES = "acknowledged-send-survives"
SAME_BYTES = "same-bytes"
BODY_STORED = "acknowledged-body-is-stored"
CONFIRM_COVERS = "confirm-covers-set"
CONFIRM_HOLDS = "confirm-offset-holds"
CONFIRMED_SURVIVE = "confirmed-bytes-survive"
LOG_HOLDS = "log-end-holds"
GRANTED_ONCE = "id-granted-once"
NEXT_ID = "next-id-is-free"
HEARTBEATS = "heartbeats-reach-leader"
REPLICA_MACHINE = "ha-replica-machine"
MASTER_MACHINE = "ha-master-machine"
REGISTRATION = "registration-machine"
BROKER_SET = "broker-set-machine"
REPLICAS_MANAGER = "replicas-manager-machine"
LEARNER = "learner-machine"
OF_GROUP = (
    ONE_MASTER,
    EPOCHS_GROW,
    SET_BY_EPOCH,
    ONLY_MASTER,
    ACK_WITHIN_SENT,
    OFFSET_CHAIN,
    BATCH_IN_EPOCH,
    LEARNER_OUTSIDE,
    SEND_SURVIVES,
    SAME_BYTES,
    BODY_STORED,
    CONFIRM_COVERS,
    CONFIRM_HOLDS,
    LOG_HOLDS,
    CONFIRMED_SURVIVE,
    GRANTED_ONCE,
    NEXT_ID,
    HEARTBEATS,
    REPLICA_MACHINE,
    MASTER_MACHINE,
    REGISTRATION,
    BROKER_SET,
    REPLICAS_MANAGER,
    LEARNER,
)


@dataclass(frozen=True, slots=True)
class Row:
    """What a judge must say about one invariant of one group: the verdict and how often it was evaluated."""

    verdict: str
    evaluated: int


@dataclass(frozen=True, slots=True)
class Lost:
    """Lost messages of one master epoch; offsets are the starts of the first and the last one."""

    group: str
    epoch: int
    from_offset: int
    to_offset: int
    acknowledged: int


@dataclass(frozen=True, slots=True)
class Scenario:
    """One capture and everything that a replay must find in it: rows by group and invariant."""

    packets: tuple[Packet, ...]
    rows: dict[str, dict[str, Row]]
    losses: tuple[Lost, ...]
    all_ack: bool = False


@dataclass(slots=True)
class Ledger:
    """Counts what must be evaluated, and keeps which verdicts are not the usual ones.

    `group` is the one that is written about now; `starts` and `acknowledged` are by group and epoch.
    `carried` holds which connections to replicas a run of log bytes went over, by group, epoch, offset and
    size; `runs` every run by the same. `records`: messages that were acknowledged one by one. `facts` and
    `learners` are by group: each fact is told about each learner. `all_ack`: the judge is told that every
    member of the SyncStateSet acknowledges.
    """

    group: str = GROUP
    evaluated: Counter[tuple[str, str]] = field(default_factory=Counter)
    verdicts: dict[tuple[str, str], str] = field(default_factory=dict)
    starts: dict[tuple[str, int], int] = field(default_factory=dict)
    acknowledged: list[tuple[str, int, int]] = field(default_factory=list)
    cut: list[tuple[str, int, int]] = field(default_factory=list)
    confirmed: dict[tuple[str, int], int] = field(default_factory=dict)
    carried: dict[tuple[str, int, int, int], set[int]] = field(default_factory=dict)
    records: list[tuple[str, int, int, int]] = field(default_factory=list)
    runs: list[tuple[str, int, int, int]] = field(default_factory=list)
    all_ack: bool = False
    facts: Counter[str] = field(default_factory=Counter)
    learners: dict[str, set[int]] = field(default_factory=dict)

    def carry(self, epoch: int, offset: int, size: int, connection: int) -> None:
        """A run of log bytes went over a connection; one that went over another before is compared."""
        self.runs.append((self.group, epoch, offset, size))
        seen = self.carried.setdefault((self.group, epoch, offset, size), set())
        if connection not in seen:
            for _ in seen:
                self.count(SAME_BYTES)
            seen.add(connection)

    def count(self, *invariants: str) -> None:
        """One evaluation more of each, of the group of today or of the whole capture."""
        self.evaluated.update((self._of(each), each) for each in invariants)

    def count_in(self, group: str, invariant: str) -> None:
        """One evaluation more in another life of the group."""
        self.evaluated[group, invariant] += 1

    def expect(self, invariant: str, verdict: str) -> None:
        """The row of this invariant has this verdict."""
        self.verdicts[self._of(invariant), invariant] = verdict

    def _of(self, invariant: str) -> str:
        return WHOLE_CAPTURE if invariant == PAIRING else self.group

    def fact(self, *, master: bool, members: bool) -> None:
        """The controller said something with an epoch: who is master, who is in the SyncStateSet."""
        self.facts[self.group] += 1
        self.count(EPOCHS_GROW)
        if master:
            self.count(ONE_MASTER)
        if members:
            self.count(SET_BY_EPOCH, LEARNER_OUTSIDE)

    def epoch_starts(self, epoch: int, offset: int) -> None:
        """A new master begins to write at this offset of its log."""
        self.starts[self.group, epoch] = offset

    def acknowledge(self, epoch: int, offset: int, size: int | None = None) -> None:
        """The master of this epoch told a producer that its message lies at this offset.

        `size`: of its record, where the request held no other message.
        """
        self.count(SEND_SURVIVES)
        self.acknowledged.append((self.group, epoch, offset))
        if size is not None:
            self.records.append((self.group, epoch, offset, size))

    def _stored(self) -> None:
        """Count such messages for every run with their whole record, before what was replaced or cut."""
        for group, epoch, offset, size in self.records:
            later = [start for (each, at), start in self.starts.items() if each == group and at > epoch]
            later += [place for each, at, place in self.cut if (each, at) == (group, epoch)]
            if offset < min(later, default=offset + 1):
                self.evaluated[group, BODY_STORED] += sum(
                    run[:2] == (group, epoch) and run[2] <= offset and offset + size <= run[2] + run[3]
                    for run in self.runs
                )

    def cut_off(self, epoch: int, offset: int) -> None:
        """The log of the master of this epoch ends here from now on: what it had acknowledged is gone."""
        gone = [key for key in self.acknowledged if key[:2] == (self.group, epoch) and key[2] >= offset]
        self.acknowledged = [key for key in self.acknowledged if key not in gone]
        self.cut += gone

    def confirm(self, epoch: int, offset: int) -> None:
        """The master of this epoch told a replica that its log is confirmed up to this offset."""
        self.confirmed[self.group, epoch] = max(offset, self.confirmed.get((self.group, epoch), 0))

    def _followed(self) -> None:
        """Count every epoch that confirmed something and of which a later one's start was seen."""
        for (group, epoch), offset in self.confirmed.items():
            starts = [
                start for (each, later), start in self.starts.items() if each == group and later > epoch
            ]
            if not starts or self.verdicts.get((group, SEND_SURVIVES)) == "unknown":
                continue
            self.evaluated[group, CONFIRMED_SURVIVE] += 1
            if offset > min(starts):
                self.verdicts[group, CONFIRMED_SURVIVE] = "violated" if self.all_ack else "diverged"

    def losses(self) -> tuple[Lost, ...]:
        """What was cut off, and the acknowledged messages at or after the start of the epoch after theirs."""
        lost: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
        starts: defaultdict[str, dict[int, int]] = defaultdict(dict)
        for (group, epoch), start in self.starts.items():
            starts[group][epoch] = start
        for group, epoch, offset in self.acknowledged:
            later = [each for each in starts[group] if each > epoch]
            if later and offset >= starts[group][min(later)]:
                lost[group, epoch].append(offset)
        for group, epoch, offset in self.cut:
            lost[group, epoch].append(offset)
        return tuple(Lost(*key, min(at), max(at), len(at)) for key, at in sorted(lost.items()))

    def add(self, other: Ledger) -> None:
        """Take over all that another group's ledger says about the same capture."""
        self.evaluated.update(other.evaluated)
        self.verdicts.update(other.verdicts)
        self.starts.update(other.starts)
        self.acknowledged += other.acknowledged
        self.cut += other.cut
        self.records += other.records
        self.runs += other.runs
        self.confirmed.update(other.confirmed)
        self.facts.update(other.facts)
        self.learners.update(other.learners)

    def scenario(self, packets: list[Packet]) -> Scenario:
        """The capture and its rows; not expected otherwise they are ok, or unknown when never evaluated."""
        for group, learners in self.learners.items():
            self.evaluated[group, LEARNER] += self.facts[group] * len(learners)
        self._followed()
        self._stored()
        losses = []
        for loss in self.losses():
            verdict = self.verdicts.setdefault((loss.group, SEND_SURVIVES), "violated")
            if verdict == "violated":
                losses.append(loss)
        rows: dict[str, dict[str, Row]] = {}
        for group in sorted({group for group, _ in self.evaluated}):
            for invariant in [PAIRING] if group == WHOLE_CAPTURE else OF_GROUP:
                times = self.evaluated[group, invariant]
                verdict = self.verdicts.get((group, invariant), "ok" if times else "unknown")
                rows.setdefault(group, {})[invariant] = Row(verdict, times)
        return Scenario(tuple(packets), rows, tuple(losses), self.all_ack)
