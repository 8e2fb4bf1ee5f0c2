"""Pure algorithms of ZooKeeper's sessions.

What `rules` means to the machines of that family: the functions that the generated protocol
`replispec.wire.zookeeper.rules.Rules` lists. Decided by the golden examples in
spec/vectors/zookeeper/sessions.yaml.
"""

from __future__ import annotations

__all__ = ["ticks_of"]


def ticks_of(timeout: int, tick: int) -> int:
    """Ticks, the one that goes on among them, of which the last one ends when `timeout` is over. No tick is
    shorter than 1 (ms)."""
    return -(-timeout // max(tick, 1)) + 1
