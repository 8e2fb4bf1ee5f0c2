"""Whether all was seen that controllers were asked: what is missing may have removed brokers."""

from __future__ import annotations

from collections.abc import Sequence

from replispec.replay.events.observation import Observation, ObservationKind, ends_of
from replispec.replay.events.rocketmq.groups import BrokerGroups


def controllers_were_seen(rows: Sequence[Observation], groups: BrokerGroups) -> bool:
    """False when bytes of a controller's connection were lost; of any, where no controller is known."""
    holed = {row.connection for row in rows if row.kind == ObservationKind.UNSEEN}
    return not any(
        not groups.controllers or not groups.controllers.keys().isdisjoint(ends_of(each)) for each in holed
    )
