"""In which versions a follower asks, by the generation that brokers are configured for."""

from __future__ import annotations

from typing import Final

from replispec.runtime.primitives.immutable import immutable
from replispec.wire.kafka import constants as c


@immutable
class FollowerVersions:
    """Versions of Fetch, ListOffsets and OffsetForLeaderEpoch; the last is None where the log is cut to the
    high watermark instead."""

    fetch: int
    list_offsets: int
    epochs: int | None

    @property
    def says_epoch(self) -> bool:
        """Whether questions name the epoch of the leader that is asked."""
        return self.fetch >= c.FETCH_WITH_EPOCH


_NEWEST: Final = FollowerVersions(c.FETCH_2_6, c.LIST_OFFSETS_2_6, c.OFFSET_FOR_LEADER_EPOCH_2_6)
_BY_GENERATION: Final = {
    c.FOLLOWS_0_11: FollowerVersions(c.FETCH_0_11, c.LIST_OFFSETS_0_11, None),
    c.FOLLOWS_1_0: FollowerVersions(c.FETCH_1_0, c.LIST_OFFSETS_1_0, c.OFFSET_FOR_LEADER_EPOCH_1_0),
    c.FOLLOWS_2_2: FollowerVersions(c.FETCH_2_2, c.LIST_OFFSETS_2_2, c.OFFSET_FOR_LEADER_EPOCH_2_2),
}


def versions_of(generation: str) -> FollowerVersions:
    """What followers of a generation speak, as `inter.broker.protocol.version` names it."""
    return _BY_GENERATION.get(generation, _NEWEST)
