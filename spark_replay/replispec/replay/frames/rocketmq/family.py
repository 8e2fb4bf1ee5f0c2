"""The streams of Apache RocketMQ: remoting commands, and replication in controller mode and outside of it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from replispec.replay.frames.family import FramesFamily, MessageColumns
from replispec.replay.frames.hints import Hints
from replispec.replay.frames.readers import FrameReader
from replispec.replay.frames.rocketmq.columns import (
    COMMAND_FIELDS,
    REPLICATION_FIELDS,
    command_arrays,
    replication_arrays,
)
from replispec.replay.frames.rocketmq.pulled import PULLED
from replispec.replay.frames.rocketmq.readers import (
    HA_LEGACY_MASTER,
    HA_LEGACY_REPLICA,
    HA_MASTER,
    HA_REPLICA,
    REMOTING,
    HaMasterReader,
    HaReplicaReader,
    LegacyReader,
    RemotingReader,
)
from replispec.replay.tcp.directions import Direction
from replispec.wire.rocketmq.constants import FAST_PORT_BELOW
from replispec.wire.rocketmq.options import BrokerOptions, ControllerOptions, NameServerOptions


def _readers(hints: Hints) -> dict[str, FrameReader]:
    return {
        REMOTING: RemotingReader(),
        HA_REPLICA: HaReplicaReader(),
        HA_MASTER: HaMasterReader(padded_answers=hints.padded_answers),
        HA_LEGACY_REPLICA: LegacyReader(HA_LEGACY_REPLICA),
        HA_LEGACY_MASTER: LegacyReader(HA_LEGACY_MASTER),
    }


def _kinds(initiator: bool | None) -> tuple[str, ...]:
    """A replica always opens its connection."""
    if initiator is None:
        # Three reports in a row look like one heartbeat of a master, but not the other way round.
        return (REMOTING, HA_REPLICA, HA_MASTER, HA_LEGACY_REPLICA, HA_LEGACY_MASTER)
    return (REMOTING, HA_REPLICA, HA_LEGACY_REPLICA) if initiator else (REMOTING, HA_MASTER, HA_LEGACY_MASTER)


def _told(direction: Direction, hints: Hints) -> tuple[str, ...]:
    if direction.destination_port in hints.ha_ports or direction.destination in hints.ha_addresses:
        return (HA_REPLICA, HA_LEGACY_REPLICA)
    if direction.source_port in hints.ha_ports or direction.source in hints.ha_addresses:
        return (HA_MASTER, HA_LEGACY_MASTER)
    return ()


def _default(options: type[NameServerOptions | ControllerOptions | BrokerOptions]) -> int:
    defaults: dict[str, Any] = {each.name: each.default for each in fields(options)}
    return int(defaults["listen_port"])


FAMILY = FramesFamily(
    readers=_readers,
    kinds=_kinds,
    told=_told,
    peers={
        REMOTING: REMOTING,
        HA_REPLICA: HA_MASTER,
        HA_MASTER: HA_REPLICA,
        HA_LEGACY_REPLICA: HA_LEGACY_MASTER,
        HA_LEGACY_MASTER: HA_LEGACY_REPLICA,
    },
    neighbours=(-FAST_PORT_BELOW,),
    ports=tuple(_default(each) for each in (NameServerOptions, ControllerOptions, BrokerOptions)),
    held=(PULLED,),
    columns=(
        MessageColumns(frozenset({REMOTING}), COMMAND_FIELDS, command_arrays),
        MessageColumns(frozenset({HA_REPLICA, HA_MASTER}), REPLICATION_FIELDS, replication_arrays),
    ),
)
