"""A client of a metastore, as a part of a node: it asks, watches and goes on, whichever server is there.

A node hands it its events until one of `connected`, `received`, `closed` takes it, and its ticks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from replispec.runtime.world import Closed, Connected, Outbox, Received
from replispec.runtime.zookeeper.client.batches import BatchItem, change_all
from replispec.runtime.zookeeper.client.session import MetastoreRequest, Session, SessionStanding, Then
from replispec.runtime.zookeeper.client.settling import Change, change, change_together
from replispec.runtime.zookeeper.client.watching import SeenNode, WatchedNodes, Watching
from replispec.wire.zookeeper.codes import CreateFlags, Permission
from replispec.wire.zookeeper.constants import EVERYBODY_ID, EVERYBODY_SCHEME
from replispec.wire.zookeeper.operations import (
    AccessEntry,
    CheckVersionRequest,
    CreateRequest,
    DeleteRequest,
    SetDataRequest,
    WatchNotification,
)


class MetastoreClient:
    """One session at servers HOST:PORT, and all that is asked in it. `stands` is told of each change of its
    standing, before what is watched is read again."""

    def __init__(
        self,
        outbox: Outbox,
        servers: Sequence[str],
        timeout_ms: int,
        *,
        stands: Callable[[SessionStanding], None] = lambda _standing: None,
    ) -> None:
        self._tell_standing = stands
        self._watched = WatchedNodes()
        self.session = Session(outbox, servers, timeout_ms, told=self._told, stands=self._stands)

    def begin(self, now_ms: int) -> None:
        """Begin a session, the first one or one in the place of one that is lost."""
        self.session.begin(now_ms)

    def leave(self) -> None:
        """End the session."""
        self.session.leave()

    # What is asked

    def read(self, request: MetastoreRequest, then: Then) -> None:
        """Ask what changes nothing; without an answer it is asked again by whoever needs it."""
        self.session.ask(request, then)

    def create(
        self, path: str, data: bytes | None, then: Then, *, flags: int = CreateFlags.PERSISTENT
    ) -> None:
        """Make a node."""
        change(self.session, create_of(path, data, flags), then)

    def set_data(self, path: str, data: bytes | None, version: int, then: Then) -> None:
        """Replace what a node holds."""
        change(self.session, SetDataRequest(path, data, version), then)

    def delete(self, path: str, version: int, then: Then) -> None:
        """Remove a node."""
        change(self.session, DeleteRequest(path, version), then)

    def change_together(self, changes: Sequence[Change], then: Then) -> None:
        """Make all of these changes or none."""
        change_together(self.session, changes, then)

    def change_all(self, items: Sequence[BatchItem], *, fence: CheckVersionRequest | None = None) -> None:
        """Make many changes in few requests; see `batches`."""
        change_all(self.session, items, fence=fence)

    def watch(self, path: str, seen: Callable[[SeenNode], None], *, children: bool = False) -> Watching:
        """Be told what a node holds, or which children it has, now and after each change."""
        watching = Watching(self.session, path, seen, children=children)
        self._watched.add(watching)
        return watching

    # Events

    def connected(self, event: Connected) -> bool:
        """False when the connection is none of this client's."""
        return self.session.connected(event)

    def received(self, event: Received) -> bool:
        """False when the connection is none of this client's."""
        return self.session.received(event)

    def closed(self, event: Closed) -> bool:
        """False when the connection is none of this client's."""
        return self.session.closed(event)

    def ticked(self, now_ms: int) -> None:
        """Let time pass."""
        self.session.ticked(now_ms)

    def deadline_ms(self) -> int | None:
        """When time matters."""
        return self.session.deadline_ms()

    def _told(self, told: WatchNotification) -> None:
        self._watched.told(told)

    def _stands(self, standing: SessionStanding) -> None:
        self._tell_standing(standing)
        self._watched.stands(standing)


def create_of(path: str, data: bytes | None, flags: int = CreateFlags.PERSISTENT) -> CreateRequest:
    """The request for a node with which everybody may do everything."""
    everybody = AccessEntry(Permission.ALL, EVERYBODY_SCHEME, EVERYBODY_ID)
    return CreateRequest(path, data, [everybody], flags)
