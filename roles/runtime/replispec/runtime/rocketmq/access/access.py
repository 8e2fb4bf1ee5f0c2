"""Decides whether a request is served, by whoever signed it and what it needs.

Source: PlainPermissionManager.validate, PlainAccessResource.parse (apache/rocketmq rocketmq-all-5.1.4) for
the signature; which request needs what is ours (`replispec.wire.rocketmq.rights`).
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.jsons import loads, name_of
from replispec.runtime.primitives.rights import Need
from replispec.runtime.rocketmq.access.rarely_told import RarelyTold
from replispec.runtime.rocketmq.access.users import User, Users, UsersError, users_in
from replispec.runtime.rocketmq.remoting.audit import is_set
from replispec.runtime.rocketmq.remoting.server import Request, host_of
from replispec.runtime.rocketmq.rules.signatures import signature_of
from replispec.runtime.world import FileRead, Level, Outbox
from replispec.wire.rocketmq import rights
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.constants import ACCESS_KEY, SIGNATURE_KEY, UNSIGNED_KEY


class Access:
    """Knows the users; `needs` says what requests need, by their code."""

    def __init__(self, outbox: Outbox, users: Users, needs: Mapping[int, tuple[Need, ...]]) -> None:
        self._outbox = outbox
        self._users = users
        self._needs = needs
        self._lines = RarelyTold()
        self._text: bytes | None = None

    def file_read(self, event: FileRead) -> None:
        """The file of users was read again; one that cannot be used leaves what was known before."""
        if event.data == self._text:
            return
        is_first, self._text = self._text is None, event.data
        try:
            users = users_in(event.data or b"")
        except UsersError as error:
            self._outbox.note(Level.ERROR, "changed users not taken", file=event.name, reason=str(error))
            return
        if users != self._users or not is_first:
            self._users = users
            self._outbox.note(Level.INFO, "changed users taken", file=event.name, users=len(users.by_key))

    def refusal(self, request: Request) -> str | None:
        """Why a request is not served; None: it is. Of what is refused a line tells, not too often."""
        reason = self._refusal(request)
        if reason is not None:
            self._tell(request, reason)
        return reason

    def _refusal(self, request: Request) -> str | None:
        fields = request.command.header.ext_fields or {}
        key = fields.get(ACCESS_KEY)
        user = self._users.by_key.get(key) if key is not None else None
        if self._users.trusts(host_of(request.peer), user):
            return None
        if not key:
            return f"the request is not signed: it has no {ACCESS_KEY}"
        if user is None or not _is_signed(user, fields, request.command.body):
            return f"the signature is wrong, or nobody has this {ACCESS_KEY}"
        if user.is_admin:
            return None
        for need in self._needs.get(request.code, ()):
            if not need.when or is_set(fields, need.when):
                reason = _lacking(user, need, fields, request.command.body)
                if reason is not None:
                    return reason
        return None

    def _tell(self, request: Request, reason: str) -> None:
        host, key = host_of(request.peer), (request.command.header.ext_fields or {}).get(ACCESS_KEY)
        count = self._lines.due((host, request.code, reason), request.now_ms)
        if count is not None:
            self._outbox.note(
                Level.WARNING,
                "request refused",
                request=name_of(request.code, RequestCode),
                who=key or "",
                peer=request.peer,
                reason=reason,
                times=count,
            )


def _is_signed(user: User, fields: Mapping[str, str | None], body: bytes) -> bool:
    said = fields.get(SIGNATURE_KEY) or ""
    signed = {key: value for key, value in fields.items() if key not in (SIGNATURE_KEY, UNSIGNED_KEY)}
    wanted = signature_of(user.secret, signed, body)
    return hmac.compare_digest(wanted.encode(), said.encode("utf-8", "surrogatepass"))


def _lacking(user: User, need: Need, fields: Mapping[str, str | None], body: bytes) -> str | None:
    """What a user lacks that is no administrator."""
    if need.right == rights.ANYBODY:
        return None
    if need.right == rights.BROKER:
        return None if user.is_broker else "only processes of the cluster may ask this"
    if need.right == rights.ADMINISTRATOR:
        return "only an administrator may ask this"
    for name in _names(need, fields, body):
        if not _may(user, need.right, name):
            return f"no right to {need.right.lower()} {name[:127]!r}"
    return None


def _may(user: User, right: str, name: str) -> bool:
    if right == rights.PUBLISH:
        return user.of_topic(name).may_write
    if right == rights.SUBSCRIBE:
        return user.of_topic(name).may_read
    assert right == rights.CONSUME, f"nobody knows the right {right}"
    return user.of_group(name).may_read


def _names(need: Need, fields: Mapping[str, str | None], body: bytes) -> Iterable[str]:
    """What a right is of; a field that is missing names nothing, and nothing is done for it."""
    if not need.in_body:
        name = fields.get(need.keys[0])
        return () if name is None else (name,)
    try:
        return tuple(_in_body(loads(body) if body else None, need.keys))
    except RemoteProtocolError:
        # It cannot be read by anybody else either.
        return ()


def _in_body(value: Any, keys: tuple[str, ...]) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from _in_body(each, keys)
    elif isinstance(value, dict) and keys:
        yield from _in_body(value.get(keys[0]), keys[1:])
    elif value is not None and not keys:
        # A number stands for its text, as for whoever reads the whole.
        yield str(value)
