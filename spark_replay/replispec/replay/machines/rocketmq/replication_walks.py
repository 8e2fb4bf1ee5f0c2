"""Both sides of every replication connection, walked frame by frame."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Final

from replispec.replay.events.observation import Observation, ObservationKind
from replispec.replay.events.rocketmq.groups import BrokerGroups
from replispec.replay.machines.steps import Findings, step
from replispec.replay.machines.walks import Walk, release_of
from replispec.runtime.primitives.machines import Machine
from replispec.runtime.primitives.unknown import UNKNOWN
from replispec.wire.rocketmq import ha
from replispec.wire.rocketmq.machines import ha_master, ha_replica

_SIDES: Final = (0, 1)
_FROM_REPLICA: Final = (ObservationKind.HANDSHAKE, ObservationKind.REPORT)
_FROM_MASTER: Final = (ObservationKind.ANSWER, ObservationKind.BATCH, ObservationKind.HEARTBEAT)
_FROM_BOTH: Final = (*_FROM_REPLICA, *_FROM_MASTER)


def walk_replication(rows: Sequence[Observation], groups: BrokerGroups, found: Findings) -> None:
    """Walk the machines of replica and master over each connection."""
    for connection in _by_connection(rows).values():
        _walk(ha_replica.MACHINE, connection, groups, found, is_replica=True)
        _walk(ha_master.MACHINE, connection, groups, found, is_replica=False)


def _by_connection(rows: Sequence[Observation]) -> dict[str, list[Observation]]:
    """The rows of each replication connection."""
    kinds = {ObservationKind.OPENED, ObservationKind.GAP, *_FROM_BOTH}
    found: dict[str, list[Observation]] = defaultdict(list)
    for row in rows:
        if row.kind in kinds:
            found[row.connection].append(row)
    return found


def _walk(
    machine: Machine[Any, Any],
    rows: Sequence[Observation],
    groups: BrokerGroups,
    found: Findings,
    *,
    is_replica: bool,
) -> None:
    """Walk one side of one connection.

    Bytes that were lost in one direction may lie anywhere up to its next frame: until then, and at it,
    everything is possible.
    """
    walk = Walk(machine, _release(rows, groups, is_replica=is_replica))
    lost = set(_SIDES)
    mixed = _is_mixed(rows)
    for row in rows:
        if row.kind == ObservationKind.OPENED:
            lost.clear()
            walk.begin()
        elif row.kind == ObservationKind.GAP:
            lost.add(row.direction)
        else:
            if lost or mixed:
                walk.forget()
            lost.discard(row.direction)
            sent = (row.kind in _FROM_REPLICA) is is_replica
            step(walk, row, _facts(row), found[row.group or "", machine.finding], sent=sent)


def _is_mixed(rows: Sequence[Observation]) -> bool:
    """True when one direction was taken for what the other one is: nothing rests on their order then."""
    sides = {(row.kind in _FROM_REPLICA, row.direction) for row in rows if row.kind in _FROM_BOTH}
    return len(sides) > len({is_replica for is_replica, _ in sides})


def _release(
    rows: Sequence[Observation], groups: BrokerGroups, *, is_replica: bool
) -> tuple[int, ...] | None:
    """The release of one end of a connection, by the versions in its broker's remoting headers."""
    address = rows[0].address
    if not is_replica:
        return release_of(groups.version_at(address))
    for row in rows:
        if row.kind == ObservationKind.HANDSHAKE:
            address = row.text or groups.address_of(groups.name_at(address), row.broker_id)
            return release_of(groups.version_at(address))
    return None


def _facts(row: Observation) -> SimpleNamespace:
    """The fields of the frame; the epochs of an answer with a hole were not seen."""
    entries: Any = UNKNOWN
    if row.epochs is not None:
        entries = tuple(ha.HaEpochEntry(each["epoch"], each["start_offset"]) for each in row.epochs)
    return SimpleNamespace(
        sync_from_last_file=row.sync_from_last_file,
        async_learner=row.async_learner,
        broker_id=row.broker_id,
        max_offset=row.max_offset,
        entries=entries,
        offset=row.offset,
        body_size=row.body_size,
        epoch=row.epoch,
        epoch_start_offset=row.epoch_start_offset,
        confirm_offset=row.confirm_offset,
    )
