"""Confirmed messages as JSON lines, each once: the file itself says how far it is.

Source: RIP-44 "Async Learner".
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, Final

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.jsons import dumps, loads
from replispec.runtime.rocketmq.log import MessageStore, Placed, properties_of
from replispec.runtime.storage import AppendLines, LinesReader, StorageFailed
from replispec.runtime.world import Persisted, Writes, Written
from replispec.wire.rocketmq.constants import MAPPING_TOPIC, SCHEDULE_TOPIC

LINES_AT_ONCE: Final = 500
"""Messages that are written in one go."""
END: Final = "end"
CUT: Final = "cut"


class Export:
    """Writes what lies before the confirmed offset. Raises StorageFailed when the file cannot be read.

    Each line has `end`, the offset after its message: the last one says where to go on. A log that was cut
    before what is exported already, because messages were lost, leaves a line with `cut`, the offset; what
    takes the place of the lost ones follows it. One write is under way at a time; `failed` is told why one
    was refused, and the time, and `retry` tries again.
    """

    def __init__(
        self, writes: Writes, lines: LinesReader, store: MessageStore, failed: Callable[[str, int], None]
    ) -> None:
        self._writes = writes
        self._store = store
        self._failed = failed
        self.position = _position(lines.last())
        self._confirmed = 0
        self._cut: int | None = None
        self._under_way = False

    def truncated(self, offset: int) -> None:
        """The log was cut."""
        self._confirmed = min(self._confirmed, offset)
        self._cut = offset if self._cut is None else min(self._cut, offset)
        self._go_on()

    def up_to(self, confirmed: int) -> None:
        """Export what lies before an offset."""
        self._confirmed = confirmed
        self._go_on()

    def retry(self) -> None:
        """Try again what was refused."""
        self._go_on()

    def _go_on(self) -> None:
        if self._under_way:
            return
        cut, self._cut = self._cut, None
        if cut is not None and cut < self.position:
            self._write([dumps({CUT: cut})], cut, cut)
            return
        found = []
        for placed in self._store.log.records(max(self.position, self._store.log.first), self._confirmed):
            if placed.record.topic in (MAPPING_TOPIC, SCHEDULE_TOPIC):
                # No message, but what a broker keeps there, and one that waits and comes to its topic later.
                continue
            found.append(placed)
            if len(found) >= LINES_AT_ONCE:
                break
        if found:
            self._write([dumps(_line(each)) for each in found], found[-1].offset + found[-1].size, None)

    def _write(self, lines: list[bytes], end: int, cut: int | None) -> None:
        self._under_way = True

        def written(event: Written) -> None:
            self._under_way = False
            if isinstance(event, Persisted):
                self.position = end
                self._go_on()
                return
            if cut is not None:
                self._cut = cut if self._cut is None else min(cut, self._cut)
            self._failed(event.reason, event.now_ms)

        self._writes.persist(AppendLines(lines), then=written)


def _position(line: bytes | None) -> int:
    """Where to go on after this line. Raises StorageFailed for one that is not ours."""
    if line is None:
        return 0
    try:
        value = loads(line)
    except RemoteProtocolError as error:
        raise StorageFailed(f"the last line of the export cannot be read: {error}") from error
    found = value.get(END, value.get(CUT)) if isinstance(value, dict) else None
    if not isinstance(found, int) or found < 0:
        raise StorageFailed("the last line of the export does not say where it ends")
    return found


def _line(placed: Placed) -> dict[str, Any]:
    record = placed.record
    line: dict[str, Any] = {
        "topic": record.topic,
        "queue": record.queue_id,
        "position": record.queue_offset,
        "offset": placed.offset,
        END: placed.offset + placed.size,
        "born_ms": record.born_timestamp,
        "stored_ms": record.store_timestamp,
        "flags": record.sys_flag,
        "properties": properties_of(record.properties),
    }
    try:
        line["text"] = record.body.decode()
    except UnicodeDecodeError:
        line["base64"] = base64.b64encode(record.body).decode()
    return line
