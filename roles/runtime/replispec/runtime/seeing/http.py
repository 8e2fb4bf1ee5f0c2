"""One HTTP connection without a socket: a request of bounded size in, one answer out.

Every answer ends the connection, so that nobody holds one that asks for nothing. A stream of events (SSE)
is the one answer that goes on.
"""

from __future__ import annotations

import re
from typing import Final

import h11

from replispec.runtime.primitives.hosts import is_of_loopback
from replispec.runtime.primitives.immutable import immutable

REQUEST_BYTES_MAX: Final = 8 * 1024
"""Request line and headers; nobody needs a body here."""
_NUMBER: Final = re.compile(r":[0-9]*$")


@immutable
class HttpRequest:
    """A request; `accept` is the header of this name, or empty."""

    method: str
    path: str
    accept: str


@immutable
class HttpAnswer:
    """What is answered. `is_stream`: the body is only the beginning."""

    status: int
    content_type: str
    body: bytes
    is_stream: bool = False
    policy: str = "default-src 'none'"


class Bad(Exception):
    """What came is no request that is taken here; `status` says which way."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class HttpConnection:
    """The serving side of one connection, at this address of ours.

    Who is reached on loopback is asked for by a name of this machine: a browser that asks for another one
    was sent here by a page from elsewhere, which a name of its own lets read the answer (DNS rebinding).
    """

    def __init__(self, at: str = "") -> None:
        self._is_here = is_of_loopback(at)
        self._h11 = h11.Connection(our_role=h11.SERVER, max_incomplete_event_size=REQUEST_BYTES_MAX)

    def received(self, data: bytes) -> HttpRequest | None:
        """Take the next bytes, none of them at the end; None while the request is not whole. Raises Bad."""
        try:
            self._h11.receive_data(data)
            event = self._h11.next_event()
        except h11.RemoteProtocolError as error:
            raise Bad(error.error_status_hint, str(error)) from error
        if event is h11.NEED_DATA:
            return None
        if not isinstance(event, h11.Request):
            raise Bad(400, "the connection ended before its request")
        names = dict(event.headers)
        host = names.get(b"host", b"localhost").decode("latin-1")
        if self._is_here and not is_of_loopback(_NUMBER.sub("", host)):
            raise Bad(421, "this is heard on loopback alone: ask for localhost, or an address")
        method, target = event.method.decode("ascii"), event.target.decode("ascii", "replace")
        return HttpRequest(method, target.partition("?")[0], names.get(b"accept", b"").decode("latin-1"))

    def respond(self, answer: HttpAnswer, *, with_body: bool = True) -> bytes:
        """The bytes of an answer."""
        headers = [
            ("Content-Type", answer.content_type),
            ("Connection", "close"),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"),
            ("Content-Security-Policy", answer.policy),
        ]
        if not answer.is_stream:
            headers.append(("Content-Length", str(len(answer.body))))
        body = answer.body if with_body else b""
        if self._h11.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            head = self._h11.send(h11.Response(status_code=answer.status, headers=headers)) or b""
            # Without a length the end of the connection ends a stream: no frames of chunks are needed.
            return head + (self._h11.send(h11.Data(data=body)) or b"" if body else b"")
        return b""

    def more(self, data: bytes) -> bytes:
        """The bytes of more of a stream."""
        return self._h11.send(h11.Data(data=data)) or b""
