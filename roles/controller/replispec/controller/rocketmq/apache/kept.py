"""What a folder of a controller of Apache RocketMQ gives."""

from __future__ import annotations

from collections.abc import Sequence

from replispec.event.v1.event_pb2 import BrokerSetState
from replispec.runtime.primitives.immutable import immutable


class FolderUnread(Exception):
    """A folder is damaged, incomplete or of another kind; says what."""


@immutable
class KeptRecord:
    """What is known to be committed: broker sets up to an entry, in the words of whoever wrote it; what lies
    behind it and could change something; what people are to know."""

    sets: Sequence[BrokerSetState]
    source: str
    index: int
    term: int
    beyond: Sequence[str] = ()
    notes: Sequence[str] = ()
