"""Confirmed messages as JSON lines, each once: the file itself says how far it is.

Source: RIP-44 "Async Learner".
"""

from __future__ import annotations

import base64
from typing import Any, Final

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.jsons import dumps, loads
from replispec.runtime.rocketmq.log import MessageStore, Placed, properties_of
from replispec.runtime.storage import Lines, StorageFailed

LINES_AT_ONCE: Final = 500
"""Messages that are written in one go, so that nobody waits for a large backlog."""
END: Final = "end"
CUT: Final = "cut"


class Export:
    """Writes what lies before the confirmed offset. Raises StorageFailed when the file cannot be read.

    Each line has `end`, the offset behind its message: the last one says where to go on. A log that was cut
    before what is exported already, because messages were lost, leaves a line with `cut`, the offset; what
    takes the place of the lost ones follows it.
    """

    def __init__(self, lines: Lines, store: MessageStore) -> None:
        self._lines = lines
        self._store = store
        self.position = _position(lines.last())
        self._failed = False

    def truncated(self, offset: int) -> None:
        """The log was cut. Raises StorageFailed."""
        if offset < self.position:
            self._append([dumps({CUT: offset})])
            self.position = offset

    def up_to(self, confirmed: int) -> bool:
        """Export what lies before an offset; False when more of it remains for another call. Raises
        StorageFailed; the same is to be called again then."""
        if self._failed:
            self.position = _position(self._lines.last())
            self._failed = False
        at = max(self.position, self._store.log.first)
        found = []
        for placed in self._store.log.records(at, confirmed):
            found.append(placed)
            if len(found) >= LINES_AT_ONCE:
                break
        if found:
            self._append([dumps(_line(each)) for each in found])
            self.position = found[-1].offset + found[-1].size
        return len(found) < LINES_AT_ONCE

    def _append(self, lines: list[bytes]) -> None:
        try:
            self._lines.append(lines)
        except StorageFailed:
            self._failed = True
            raise


def _position(line: bytes | None) -> int:
    """Where to go on behind this line. Raises StorageFailed for one that is not ours."""
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
