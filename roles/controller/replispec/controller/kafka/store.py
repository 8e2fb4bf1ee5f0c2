"""The store as a controller changes it: only while it is the controller.

Source: apache/kafka 2.8.2, KafkaZkClient: each request of a controller is a multi with a check of the version
of the controller's epoch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from replispec.runtime.zookeeper.client import BatchItem, MetastoreAnswer, MetastoreClient, SeenNode, Watching
from replispec.runtime.zookeeper.client.client import create_of
from replispec.wire.kafka.constants import READS_OPEN_MAX
from replispec.wire.zookeeper.codes import ErrorCode
from replispec.wire.zookeeper.constants import ANY_VERSION
from replispec.wire.zookeeper.operations import (
    CheckVersionRequest,
    GetChildrenRequest,
    GetDataRequest,
)

Read = Callable[[bytes | None, int], None]
"""Told what a node holds and its version, which is negative when there is no such node."""


class FencedStore:
    """The store during one time in office: `epoch` is that of this controller, `epoch_version` the version
    of its node at `epoch_path`; without one nothing tells this controller's changes from an older one's. Once
    `is_over`, nobody is told anything more."""

    def __init__(
        self, client: MetastoreClient, epoch_path: str | None, epoch: int, epoch_version: int
    ) -> None:
        self._client = client
        self.epoch = epoch
        self._fence = None if epoch_path is None else CheckVersionRequest(epoch_path, epoch_version)
        self.is_over = False
        self._reads: deque[tuple[str, Read]] = deque()
        self._reading = 0
        self._watched: list[Watching] = []

    def end(self) -> None:
        """This is the controller no more."""
        self.is_over = True
        for watching in self._watched:
            watching.stop()
        self._watched.clear()
        self._reads.clear()

    def change_all(self, items: Sequence[BatchItem]) -> None:
        """Make changes, each item whole or not at all; where one is refused, the others are made."""
        self._client.change_all(items, fence=self._fence)

    def make_quietly(self, path: str) -> None:
        """Make a node that may be there already."""
        made = create_of(path, None)
        changes = (made,) if self._fence is None else (self._fence, made)
        self._client.change_together(changes, lambda _: None)

    def watch(self, path: str, seen: Callable[[SeenNode], None], *, children: bool = False) -> Watching:
        """Be told what a node is, now and after each change, until `end`."""
        watching = self._client.watch(path, partial(self._seen, seen), children=children)
        self._watched = [each for each in self._watched if not each.is_over]
        self._watched.append(watching)
        return watching

    def read(self, path: str, then: Read) -> None:
        """Read what a node holds, at its turn: so many are read at once."""
        self._reads.append((path, then))
        self._read_next()

    def children(self, path: str, then: Callable[[Sequence[str]], None]) -> None:
        """Read the names below a node; there are none where there is no node."""

        def told(answer: MetastoreAnswer) -> None:
            if self.is_over:
                return
            if answer.error == ErrorCode.CONNECTION_LOSS:
                self.children(path, then)
            else:
                then(tuple(getattr(answer.message, "children", None) or ()))

        self._client.read(GetChildrenRequest(path, False), told)

    def _seen(self, seen: Callable[[SeenNode], None], node: SeenNode) -> None:
        if not self.is_over:
            seen(node)

    def _read_next(self) -> None:
        while self._reads and self._reading < READS_OPEN_MAX:
            path, then = self._reads.popleft()
            self._reading += 1
            self._client.read(GetDataRequest(path, False), partial(self._told, path, then))

    def _told(self, path: str, then: Read, answer: MetastoreAnswer) -> None:
        self._reading -= 1
        if self.is_over:
            return
        if answer.error == ErrorCode.CONNECTION_LOSS:
            self._reads.appendleft((path, then))
        elif answer.error == ErrorCode.OK and answer.message is not None:
            found: object = answer.message
            then(getattr(found, "data", None), found.stat.version)  # type: ignore[attr-defined]
        else:
            then(None, ANY_VERSION)
        self._read_next()
