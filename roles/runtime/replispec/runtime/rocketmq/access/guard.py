"""What stands before a node's requests: whether they are served, and a line for what is changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from replispec.runtime.primitives.rights import Need
from replispec.runtime.rocketmq.access.access import Access
from replispec.runtime.rocketmq.access.security import RoleOptions, Security, note_openness
from replispec.runtime.rocketmq.remoting.audit import Audit
from replispec.runtime.rocketmq.remoting.server import Request
from replispec.runtime.world import FileRead, Outbox
from replispec.wire.rocketmq.rights import AUDITED, NEEDS


class RequestGuard:
    """`needs`: what requests of other families need that come to the same listener."""

    def __init__(
        self,
        outbox: Outbox,
        security: Security,
        needs: Mapping[int, tuple[Need, ...]] | None = None,
    ) -> None:
        self._outbox = outbox
        users = security.users
        self._access = None if users is None else Access(outbox, users, {**NEEDS, **(needs or {})})
        self.refusal: Final[Callable[[Request], str | None] | None] = (
            None if self._access is None else self._access.refusal
        )
        self.watched: Final = Audit(outbox, AUDITED).watched

    def started(self, options: RoleOptions) -> None:
        """The node listens from now on."""
        note_openness(self._outbox, options)

    def file_read(self, event: FileRead) -> None:
        """The file of users was read."""
        if self._access is not None:
            self._access.file_read(event)
