"""Pure algorithms of Kafka's replication: who leads a partition and remains in sync, where logs are cut.

What `rules` means to the machines of that family: the functions that the generated protocol
`replispec.wire.kafka.rules.Rules` lists. Brokers are numbers, their ids. Decided by the golden examples in
spec/vectors/kafka.
"""

from __future__ import annotations

from collections.abc import Sequence

from replispec.wire.kafka.folder import EpochStart

__all__ = [
    "cut_by_epoch",
    "cut_to_high_watermark",
    "epoch_end",
    "high_watermark",
    "initial_isr",
    "is_cut_final",
    "known_epoch",
    "leader_of",
    "surviving_isr",
]


def initial_isr(assigned: Sequence[int], live: frozenset[int]) -> frozenset[int]:
    """The ISR of a new partition: all assigned brokers that live."""
    return live.intersection(assigned)


def surviving_isr(
    assigned: Sequence[int], isr: frozenset[int], live: frozenset[int], *, unclean: bool
) -> frozenset[int]:
    """The living members of the ISR; if none lives and `unclean`, the first living assigned broker alone."""
    alive = isr.intersection(live)
    if alive or not unclean:
        return alive
    return frozenset([broker for broker in assigned if broker in live][:1])


def leader_of(assigned: Sequence[int], leader: int | None, isr: frozenset[int]) -> int | None:
    """The old leader if it is a member, else the first assigned member, else the smallest, else None."""
    if leader in isr:
        return leader
    return next((broker for broker in assigned if broker in isr), min(isr, default=None))


def high_watermark(known: int, ends: Sequence[int]) -> int:
    """The smallest end of all who count, but never less than what it was."""
    return max(known, min(ends, default=known))


def cut_to_high_watermark(high_watermark: int, log_end: int) -> int:
    """What is not known to be committed goes."""
    return min(high_watermark, log_end)


def known_epoch(epochs: Sequence[EpochStart], asked: int) -> int | None:
    """The largest epoch not above `asked`; `asked` itself where all are; None where none is at least that."""
    if not epochs or asked > epochs[-1].epoch:
        return None
    return max((each.epoch for each in epochs if each.epoch <= asked), default=asked)


def epoch_end(epochs: Sequence[EpochStart], log_end: int, asked: int) -> int | None:
    """The start of the first epoch above `asked`, or the end of the log; None where `asked` is above all."""
    if not epochs or asked > epochs[-1].epoch:
        return None
    return next((each.start_offset for each in epochs if each.epoch > asked), log_end)


def cut_by_epoch(
    epochs: Sequence[EpochStart],
    log_end: int,
    high_watermark: int,
    leader_epoch: int | None,
    leader_end: int | None,
) -> int:
    """The first of: the end of the log, that of the epoch here, and that of the epoch at the leader."""
    if leader_end is None:
        return min(high_watermark, log_end)
    ours = None if leader_epoch is None else epoch_end(epochs, log_end, leader_epoch)
    if ours is None:
        return min(leader_end, log_end)
    if not is_cut_final(epochs, leader_epoch):
        return min(ours, log_end)
    return min(ours, leader_end, log_end)


def is_cut_final(epochs: Sequence[EpochStart], leader_epoch: int | None) -> bool:
    """Whether the epoch that the leader answered is known here, or none that is as new."""
    if leader_epoch is None:
        return True
    return known_epoch(epochs, leader_epoch) in (None, leader_epoch)
