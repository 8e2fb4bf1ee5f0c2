"""Pure algorithms of Kafka's replication: who leads a partition, and who remains in sync.

What `rules` means to the machines of that family: the functions that the generated protocol
`replispec.wire.kafka.rules.Rules` lists. Brokers are numbers, their ids. Decided by the golden examples in
spec/vectors/kafka/leaders.yaml.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["initial_isr", "leader_of", "surviving_isr"]


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
