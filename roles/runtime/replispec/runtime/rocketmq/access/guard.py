"""What stands before a node's requests: whether they are served, and a line for what is changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from replispec.runtime.primitives.rights import Need
from replispec.runtime.rocketmq.access.access import Access
from replispec.runtime.rocketmq.access.security import RoleOptions, Security, note_openness
from replispec.runtime.rocketmq.access.signer import Signer, secret_in
from replispec.runtime.rocketmq.remoting.audit import Audit
from replispec.runtime.rocketmq.remoting.server import Request
from replispec.runtime.world import FileRead, Level, Outbox
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
        self._security = security
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
        """The file of users was read, or that of the own secret. One file may be both."""
        if self._access is not None and event.name == self._security.file:
            self._access.file_read(event)
        if self._security.signer is not None and event.name == self._security.secret_file:
            self._secret_read(self._security.signer, event)

    def _secret_read(self, signer: Signer, event: FileRead) -> None:
        """What is asked from now on is signed with the secret that stands there; without one, as before."""
        secret = secret_in(event.data or b"")
        told: dict[str, object] = {"file": event.name, "who": signer.access_key}
        if not secret:
            reason = "the file cannot be read" if event.data is None else "its first line is empty"
            self._outbox.note(Level.ERROR, "changed secret not taken", **told, reason=reason)
        elif signer.renew(secret):
            self._outbox.note(Level.INFO, "changed secret taken", **told)
