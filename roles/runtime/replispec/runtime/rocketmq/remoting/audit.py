"""One line for each change that somebody asked of a role: who, from where, what, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping

from replispec.runtime.primitives.jsons import name_of
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.remoting.prepared import Prepared
from replispec.runtime.rocketmq.remoting.server import Request
from replispec.runtime.world import Level, Outbox
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.commands import REQUEST_HEADERS
from replispec.wire.rocketmq.constants import ACCESS_KEY


class Audited(Request):
    """A request whose answer is told of."""

    __slots__ = ("_audit",)
    _audit: Audit

    @classmethod
    def of(cls, request: Request, audit: Audit) -> Audited:
        """The same request; nobody answers the other one."""
        made = cls(
            request.connection,
            request.peer,
            request.listener,
            request.command,
            request.now_ms,
            request._server,
            request.wants_answer,
        )
        made._audit = audit
        return made

    def answer(
        self,
        code: int,
        *,
        ext_fields: dict[str, str | None] | None = None,
        body: bytes = b"",
        remark: str | None = None,
    ) -> None:
        """Answer, and tell of it."""
        super().answer(code, ext_fields=ext_fields, body=body, remark=remark)
        self._audit.tell(self, code, remark)

    def answer_prepared(self, answer: Prepared) -> None:
        """Likewise."""
        super().answer_prepared(answer)
        self._audit.tell(self, answer.code, None)


class Audit:
    """Tells of requests with these codes, of some only where the flag with this key is set."""

    def __init__(self, outbox: Outbox, codes: Mapping[int, str]) -> None:
        self._outbox = outbox
        self._codes = codes

    def watched(self, request: Request) -> Request:
        """The request, of which a line tells when it is answered if it is one of those."""
        flag = self._codes.get(request.code)
        if flag is None or (flag and not is_set(request.command.header.ext_fields or {}, flag)):
            return request
        return Audited.of(request, self)

    def tell(self, request: Request, code: int, remark: str | None) -> None:
        """What was asked has come to this. Of a change that was made the line is never left out."""
        fields = request.command.header.ext_fields or {}
        tell = self._outbox.record if code == ResponseCode.SUCCESS else self._outbox.note
        tell(
            Level.INFO,
            "administration",
            request=name_of(request.code, RequestCode),
            who=fields.get(ACCESS_KEY) or "",
            peer=request.peer,
            asked=_asked(request.code, fields, request.command.body),
            result=name_of(code, ResponseCode),
            remark=remark or "",
        )


def is_set(fields: Mapping[str, str | None], key: str) -> bool:
    """Whether a header's flag is."""
    return (fields.get(key) or "").lower() == "true"


def _asked(code: int, fields: Mapping[str, str | None], body: bytes) -> list[str]:
    """The fields of the header that the request declares, each cut, so that none hides another one; of a
    body that holds properties their names, for a value may be secret."""
    kind = REQUEST_HEADERS.get(code)
    declared = frozenset[str]() if kind is None else kind.KEYS
    said = [rules.excerpt(f"{key}={value}") for key, value in fields.items() if key in declared]
    if body:
        properties = None if body[:1] in b"{[" else rules.properties_in(body.decode("utf-8", "replace"))
        names = " ".join(each.name for each in properties or ())
        said.append(rules.excerpt(f"body: {names or f'{len(body)} bytes'}"))
    return said
