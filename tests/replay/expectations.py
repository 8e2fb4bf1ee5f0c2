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


@dataclass(slots=True)
class Ledger:
    """Counts what must be evaluated, and keeps which verdicts are not the usual ones."""

    evaluated: Counter[tuple[str, str]] = field(default_factory=Counter)
    verdicts: dict[tuple[str, str], str] = field(default_factory=dict)
    starts: dict[int, int] = field(default_factory=dict)
    acknowledged: list[tuple[int, int]] = field(default_factory=list)

    def count(self, *invariants: str, group: str = GROUP) -> None:
        """One evaluation more of each."""
        self.evaluated.update((group, each) for each in invariants)

    def expect(self, invariant: str, verdict: str, group: str = GROUP) -> None:
        """The row of this invariant has this verdict."""
        self.verdicts[group, invariant] = verdict

    def fact(self, *, master: bool, members: bool) -> None:
        """The controller said something with an epoch: who is master, who is in the SyncStateSet."""
        self.count(EPOCHS_GROW)
        if master:
            self.count(ONE_MASTER)
        if members:
            self.count(SET_BY_EPOCH, LEARNER_OUTSIDE)

    def losses(self) -> tuple[Lost, ...]:
        """The acknowledged messages at or behind the start of the epoch after theirs."""
        lost: defaultdict[int, list[int]] = defaultdict(list)
        for epoch, offset in self.acknowledged:
            following = min((each for each in self.starts if each > epoch), default=None)
            if following is not None and offset >= self.starts[following]:
                lost[epoch].append(offset)
        return tuple(Lost(GROUP, epoch, min(at), max(at), len(at)) for epoch, at in sorted(lost.items()))

    def scenario(self, packets: list[Packet]) -> Scenario:
        """The capture and its rows; not expected otherwise they are ok, or unknown when never evaluated."""
        losses = self.losses()
        if losses:
            self.verdicts.setdefault((GROUP, SEND_SURVIVES), "violated")
        if self.verdicts.get((GROUP, SEND_SURVIVES)) == "unknown":
            losses = ()
        rows: dict[str, dict[str, Row]] = {GROUP: {}, WHOLE_CAPTURE: {}}
        for group, invariant in [(GROUP, each) for each in OF_GROUP] + [(WHOLE_CAPTURE, PAIRING)]:
            times = self.evaluated[group, invariant]
            usual = "ok" if times else "unknown"
            rows[group][invariant] = Row(self.verdicts.get((group, invariant), usual), times)
        return Scenario(tuple(packets), rows, losses)
