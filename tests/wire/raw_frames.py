"""The bytes of every frame of a shipped capture, for tests that decode them again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from replispec.replay.capture.files import open_capture
from replispec.replay.frames.framing import decode_connection
from replispec.replay.frames.hints import Hints
from replispec.replay.tcp.directions import directions
from replispec.replay.tcp.packets import read_packets
from replispec.replay.tcp.sides import read_connections

CAPTURES = Path(__file__).parents[2] / "spark_replay/captures"
REPLICA, MASTER, REMOTING = "ha_replica", "ha_master", "remoting"
# The captures that everybody has, with known totals; the fail-overs with losses are ours.
SHARED = (
    "a_first_start",
    "c_syncstateset",
    "d_async_learner",
    "f1_510_first_start",
    "g_mqadmin",
    "k1_oldbroker_newcontroller",
    "k2_newbroker_oldcontroller",
    "m_mtu1500",
    "n_learner_alone",
    "o_brokerid_change",
    "t_binary_header",
)
OWN = ("failover_lost", "hung_master")


@dataclass(frozen=True, slots=True)
class RawFrame:
    """One whole frame: kind of its direction, the direction, its place there, its bytes."""

    kind: str
    source: str
    destination: str
    connection: str
    data: bytes


@cache
def raw_frames(name: str) -> tuple[RawFrame, ...]:
    """All frames of the capture with this name, direction by direction, in the order of the bytes."""
    return tuple(_read(CAPTURES / f"{name}.pcap"))


def _read(path: Path) -> Iterator[RawFrame]:
    with open_capture(path) as capture:
        for incarnation in read_connections(capture.data, read_packets(capture.data, capture.records())):
            for decoded in decode_connection(capture.data, directions(incarnation), Hints()):
                sizes = decoded.sizes.tolist()
                for position, size in zip(decoded.positions, sizes, strict=True):
                    at = decoded.space.window(position, size)
                    data = bytes(decoded.space.buffer[at : at + size])
                    assert len(data) == size
                    direction = decoded.direction
                    yield RawFrame(
                        decoded.kind, direction.source, direction.destination, direction.connection, data
                    )
