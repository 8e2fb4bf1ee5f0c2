"""What a client wants to know as it changes: read and watched in one, and read again after each change.

Between a change and the next watch others may come, which are never told of; so what counts is what is read,
and after a new connection everything is read again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from replispec.runtime.primitives.immutable import immutable
from replispec.runtime.zookeeper.client.session import MetastoreAnswer, Session, SessionStanding
from replispec.wire.zookeeper.codes import ErrorCode
from replispec.wire.zookeeper.operations import (
    ExistsRequest,
    GetChildren2Request,
    GetChildren2Response,
    GetDataRequest,
    GetDataResponse,
    Stat,
    WatchNotification,
)


@immutable
class SeenNode:
    """What a node is: of one that is not there `stat` is None."""

    stat: Stat | None
    data: bytes | None = None
    children: Sequence[str] = ()


class Watching:
    """One node that is watched, its data or its children, until `stop`."""

    def __init__(
        self, session: Session, path: str, seen: Callable[[SeenNode], None], *, children: bool
    ) -> None:
        self._session = session
        self.path = path
        self._seen = seen
        self._children = children
        self._is_reading = self._is_stale = self._is_over = False

    def stop(self) -> None:
        """Nothing is told any more."""
        self._is_over = True

    @property
    def is_over(self) -> bool:
        """Whether it was stopped."""
        return self._is_over

    def look(self) -> None:
        """Read it, now or once what is read is there."""
        if self._is_over:
            return
        if self._is_reading:
            self._is_stale = True
            return
        self._is_reading, self._is_stale = True, False
        if self._children:
            self._session.ask(GetChildren2Request(self.path, True), self._read)
        else:
            self._session.ask(GetDataRequest(self.path, True), self._read)

    def _read(self, answer: MetastoreAnswer) -> None:
        match answer.message:
            case GetDataResponse(data, stat) if answer.error == ErrorCode.OK:
                self._tell(SeenNode(stat, data))
            case GetChildren2Response(children, stat) if answer.error == ErrorCode.OK:
                self._tell(SeenNode(stat, children=tuple(children or ())))
            case _ if answer.error == ErrorCode.NO_NODE:
                # What is not there is watched by asking whether it is.
                self._session.ask(ExistsRequest(self.path, True), self._looked)
            case _:
                self._is_reading = False

    def _looked(self, answer: MetastoreAnswer) -> None:
        if answer.error == ErrorCode.NO_NODE:
            self._tell(SeenNode(None))
            return
        self._is_reading = False
        if answer.error == ErrorCode.OK:
            self.look()

    def _tell(self, seen: SeenNode) -> None:
        self._is_reading = False
        if self._is_stale:
            # It has changed meanwhile: what is read then is told.
            self.look()
        elif not self._is_over:
            self._seen(seen)


class WatchedNodes:
    """All that one session watches."""

    def __init__(self) -> None:
        self._by_path: dict[str, list[Watching]] = {}

    def add(self, watching: Watching) -> None:
        """Read it now, after each change, and on each new connection."""
        self._by_path.setdefault(watching.path, []).append(watching)
        watching.look()

    def told(self, told: WatchNotification) -> None:
        """Something happened to a node."""
        path = told.path or ""
        left = [each for each in self._by_path.get(path, ()) if not each.is_over]
        if left:
            self._by_path[path] = left
        else:
            self._by_path.pop(path, None)
        for each in left:
            each.look()

    def stands(self, standing: SessionStanding) -> None:
        """Of a new connection nothing is watched yet."""
        if standing is SessionStanding.CONNECTED:
            for each in [each for every in self._by_path.values() for each in every]:
                each.look()
