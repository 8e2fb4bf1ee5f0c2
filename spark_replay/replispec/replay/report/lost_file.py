"""lost.jsonl: one lost message a line, as JSON, and how much of it the report shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from replispec.replay.report.model import LostCount, LostMessage
from replispec.replay.report.wording import clock

# More would make a page that nobody reads; the file holds all.
SHOWN_MAXIMUM = 300
COUNTS_MAXIMUM = 200


@dataclass(frozen=True, slots=True)
class Lost:
    """What the report shows of the lost messages: the first SHOWN_MAXIMUM, and all of them counted."""

    messages: tuple[LostMessage, ...] = ()
    counts: tuple[LostCount, ...] = ()


NOTHING_LOST = Lost()


def write_lost(messages: Iterable[LostMessage], path: Path) -> Lost:
    """Write every message to `path` while it is read, so that memory does not grow with them.

    Keys without a value are left out, but the `body` of an empty message. Without a message no file is
    written. Raises OSError.
    """
    shown: list[LostMessage] = []
    counts: Counter[tuple[str, str, str, str]] = Counter()
    file = None
    try:
        for message in messages:
            file = path.open("wb") if file is None else file
            file.write(orjson.dumps(_document(message), option=orjson.OPT_APPEND_NEWLINE))
            counts[message.file, message.group, message.topic, message.producer_group] += 1
            if len(shown) < SHOWN_MAXIMUM:
                shown.append(message)
    finally:
        if file is not None:
            file.close()
    most = sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:COUNTS_MAXIMUM]
    return Lost(tuple(shown), tuple(LostCount(*names, count) for names, count in most))


def _document(message: LostMessage) -> dict[str, object]:
    # A body that is empty is not one that was not captured.
    told = {
        name: value
        for name, value in asdict(message).items()
        if value is not None and (value != "" or name == "body")
    }
    return {"acknowledged": clock(message.acknowledged_ns), **told}
