"""What is answered to whom: one place for paths, health and the stream of events."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from replispec.runtime.primitives.metrics import Gathered
from replispec.runtime.seeing.exposition import Exposed, Values, expose
from replispec.runtime.seeing.http import Bad, HttpAnswer, HttpRequest
from replispec.runtime.world import Numbers, RoleView

EVENTS_KEPT_MAX: Final = 100
"""Lines of the log that a page begins with."""
REUSED_MS_MAX: Final = 200
"""A text of metrics is made anew no sooner, a picture twice as soon: who asks all the time costs no more."""
_PLAIN: Final = "text/plain; charset=utf-8"
_JSON: Final = "application/json"
_HTML: Final = "text/html; charset=utf-8"


class Seen(NamedTuple):
    """One node: its role, how it is seen, and what the world counts of it now."""

    role: str
    view: RoleView
    numbers: Callable[[], Numbers]


class ShownPage(NamedTuple):
    """A page, and what it may do."""

    html: bytes
    policy: str


class Answers:
    """Answers for all nodes of one process; `page` is of those that have a picture."""

    def __init__(self, nodes: Sequence[Seen], page: ShownPage) -> None:
        self._nodes = nodes
        self._page = page
        self._gathered = [Gathered() for _ in nodes]
        self._made: dict[str, tuple[int, Exposed]] = {}
        self._events: deque[tuple[int, Mapping[str, object]]] = deque(maxlen=EVENTS_KEPT_MAX)
        self._last_event = 0
        self._pictured: tuple[int, bytes] = (0, b"")

    def respond(self, asked: HttpRequest) -> HttpAnswer:
        """The answer to a request. Raises Bad."""
        if asked.method not in ("GET", "HEAD"):
            raise Bad(405, "only GET and HEAD are answered")
        match asked.path:
            case "/metrics":
                found = self._metrics(asked.accept)
                return HttpAnswer(200, found.content_type, found.text)
            case "/healthz":
                return self._alive()
            case "/readyz":
                return self._ready()
            case "/" if self.has_page:
                return HttpAnswer(200, _HTML, self._page.html, policy=self._page.policy)
            case "/events" if self.has_page:
                return HttpAnswer(
                    200, "text/event-stream", b"retry: 1000\n\n", is_stream=asked.method == "GET"
                )
            case "/":
                return HttpAnswer(200, _PLAIN, b"/metrics\n/healthz\n/readyz\n")
        raise Bad(404, "there are /, /metrics, /healthz and /readyz")

    @property
    def has_page(self) -> bool:
        """Whether a node of this process has a picture."""
        return any(node.view.has_picture for node in self._nodes)

    # Metrics

    def _metrics(self, accept: str) -> Exposed:
        now_ms = self._nodes[0].numbers().now_ms
        made_ms, found = self._made.get(accept[:100], (None, None))
        if found is not None and made_ms is not None and now_ms < made_ms + REUSED_MS_MAX:
            return found
        found = expose([self._values(index) for index in range(len(self._nodes))], accept)
        # Formats are few; who asks for others in turn gains nothing by it.
        self._made = {accept[:100]: (now_ms, found)}
        return found

    def _values(self, index: int) -> Values:
        node = self._nodes[index]
        return self._gathered[index].gather(node.view.samples(node.numbers()), node.view.shared())

    # Health

    def _alive(self) -> HttpAnswer:
        """Whoever answers has a loop that turns."""
        now_ms = self._nodes[0].numbers().now_ms
        roles = {node.role: {"events": node.numbers().events} for node in self._nodes}
        return _json(200, {"alive": True, "now_ms": now_ms, "roles": roles})

    def _ready(self) -> HttpAnswer:
        checks = {
            node.role: {
                check.name: {"ok": check.holds, "reason": check.reason} for check in node.view.checks()
            }
            for node in self._nodes
        }
        is_ready = all(check["ok"] for role in checks.values() for check in role.values())
        return _json(200 if is_ready else 503, {"ready": is_ready, "checks": checks})

    # The page

    def happened(self, line: Mapping[str, object]) -> None:
        """A line was written to the log."""
        self._last_event += 1
        self._events.append((self._last_event, line))

    def events(self, after: int) -> tuple[int, bytes]:
        """What happened after an event, as the stream says it, and the number of the newest."""
        parts = [
            b"id: %d\nevent: line\ndata: %s\n\n" % (number, _encoded(line))
            for number, line in self._events
            if number > after
        ]
        return self._last_event, b"".join(parts)

    def picture(self) -> bytes:
        """How all is now, as the stream says it; made once for all who look at about the same time."""
        now_ms = self._nodes[0].numbers().now_ms
        made_ms, found = self._pictured
        if not found or now_ms >= made_ms + REUSED_MS_MAX // 2:
            found = self._picture()
            self._pictured = now_ms, found
        return found

    def _picture(self) -> bytes:
        pictures = [node.view.picture() for node in self._nodes if node.view.has_picture]
        return b"event: picture\ndata: %s\n\n" % _encoded(pictures)


def refused(bad: Bad) -> HttpAnswer:
    """The answer to what is no request that is taken here."""
    return HttpAnswer(bad.status, _PLAIN, f"{bad}\n".encode())


def _encoded(value: object) -> bytes:
    """JSON in one line."""
    return json.dumps(value, default=str, separators=(",", ":")).encode()


def _json(status: int, value: object) -> HttpAnswer:
    return HttpAnswer(status, _JSON, json.dumps(value, indent=2).encode() + b"\n")
