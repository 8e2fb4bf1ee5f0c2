"""Members of a SyncStateSet that nobody was granted: the machine of a broker set refuses them.

Its own walk may take a grant for one that was not captured. Ids are granted one after the other, so a member
is a stranger for sure where a controller tells later that its id, or one before it, is still to be granted.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.facts import BY_ID
from replispec.replay.events.rocketmq.grants import ASKED
from replispec.replay.events.rocketmq.groups import BrokerGroups
from replispec.replay.events.rocketmq.lives import FIRST_BROKER_ID
from replispec.replay.events.rocketmq.wholeness import controllers_were_seen
from replispec.replay.machines.group_walks import GroupWalk
from replispec.replay.machines.rocketmq.broker_set_history import MACHINE
from replispec.replay.machines.steps import Findings
from replispec.runtime.primitives.invariants import Verdict
from replispec.wire.rocketmq.codes import RequestCode

GRANTED_MIN: Final = 2
"""How many other members must have been granted their ids in the capture: of what one host sends and receives
one broker alone may be there, and the grants of all others missing."""
_BROKERS: Final = (ObservationKind.BROKER, ObservationKind.ALIVE, ObservationKind.HANDSHAKE)


@dataclass(slots=True)
class _Ids:
    """What a capture tells of the ids of one broker set in one life.

    `next_ids`: those that were told to be the next, each with the epoch of the set that had been told on its
    connection before.
    """

    granted: set[int] = field(default_factory=set)
    used: set[int] = field(default_factory=set)
    next_ids: list[tuple[int, int]] = field(default_factory=list)
    altered: list[Observation] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Members:
    """The members of the sets that the masters of a group asked for and got."""

    group: str
    ids: _Ids

    @property
    def groups(self) -> Collection[str]:
        """Their group."""
        return (self.group,)

    def walk(self, found: Findings) -> None:
        """Judge them."""
        for row in self.ids.altered:
            members = {int(each) for each in row.members or ()}
            strangers = members - self.ids.granted
            if strangers and not strangers & self.ids.used and len(members - strangers) >= GRANTED_MIN:
                stranger = min(strangers)
                verdict, says = _judged(self.ids, row.sync_state_set_epoch or 0, stranger)
                found[self.group, MACHINE.finding].note(verdict, f"{MACHINE.name}: {says}", row)


def members_to_judge(rows: Sequence[Observation], groups: BrokerGroups) -> Iterator[GroupWalk]:
    """The members of each group whose grants were seen from the first on."""
    if not controllers_were_seen(rows, groups):
        return
    for group, ids in _ids(rows).items():
        if FIRST_BROKER_ID in ids.granted and ids.altered:
            yield _Members(group, ids)


def _judged(ids: _Ids, epoch: int, stranger: int) -> tuple[Verdict, str]:
    later = min((told for since, told in ids.next_ids if since >= epoch), default=None)
    if later is not None and later <= stranger:
        return (
            Verdict.VIOLATED,
            f"{stranger} is in the SyncStateSet, and later {later} is still to be granted",
        )
    return Verdict.UNKNOWN, f"{stranger} is in the SyncStateSet, and nobody was seen to be granted that id"


def _ids(rows: Iterable[Observation]) -> Mapping[str, _Ids]:
    found: dict[str, _Ids] = defaultdict(_Ids)
    epochs: dict[tuple[str, str], int] = defaultdict(int)
    for row in rows:
        own = found[row.group or ""]
        at = row.group or "", row.connection
        if row.kind == ObservationKind.GRANTED and row.broker_id is not None:
            own.granted.add(row.broker_id)
        elif row.kind in _BROKERS and row.broker_id is not None:
            own.used.add(row.broker_id)
        elif row.kind == ObservationKind.DECISION and row.message == ASKED and row.accepted:
            told = json.loads(row.content or "{}").get("next_broker_id")
            own.next_ids += [(epochs[at], told)] if told is not None else []
        elif row.kind == ObservationKind.FACT and row.named_by == BY_ID:
            epochs[at] = max(epochs[at], row.sync_state_set_epoch or 0)
            if row.code == RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET and row.members is not None:
                own.altered.append(row)
    return found
