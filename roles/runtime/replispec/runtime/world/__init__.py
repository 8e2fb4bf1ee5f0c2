"""What a role and the world tell each other: a role is a node, events go in, effects come out.

A node holds everything that a role decides, timers and connections included, and touches nothing: bytes
arrive as events, leave as effects. One shell (`replispec.runtime.net`) carries the effects out on real
sockets, one simulated world (`replispec.runtime.sim`) on none; a node cannot tell which one it lives in.
"""

from replispec.runtime.world.effects import (
    Close,
    Dial,
    Effect,
    Halt,
    Level,
    Note,
    Pause,
    Persist,
    Resume,
    Send,
)
from replispec.runtime.world.events import (
    Accepted,
    Closed,
    Connected,
    Event,
    FileRead,
    Persisted,
    PersistFailed,
    Received,
    Started,
    Stopping,
    Ticked,
    Writable,
)
from replispec.runtime.world.node import Member, Node
from replispec.runtime.world.outbox import Outbox
from replispec.runtime.world.view import Numbers, ReadyCheck, RoleView
from replispec.runtime.world.writes import Writes, Written

__all__ = [
    "Accepted",
    "Close",
    "Closed",
    "Connected",
    "Dial",
    "Effect",
    "Event",
    "FileRead",
    "Halt",
    "Level",
    "Member",
    "Node",
    "Note",
    "Numbers",
    "Outbox",
    "Pause",
    "Persist",
    "PersistFailed",
    "Persisted",
    "ReadyCheck",
    "Received",
    "Resume",
    "RoleView",
    "Send",
    "Started",
    "Stopping",
    "Ticked",
    "Writable",
    "Writes",
    "Written",
]
