"""One line for what happens again and again, however often it does."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from replispec.wire.rocketmq.constants import REFUSED_LINE_MS

KINDS_MAX: Final = 256
"""Different lines that are remembered; what is beyond them is told of together."""


class RarelyTold:
    """Says when a line is due, and how often it was not told since."""

    def __init__(self) -> None:
        self._told: dict[Hashable, tuple[int, int]] = {}

    def due(self, kind: Hashable, now_ms: int) -> int | None:
        """How often this happened since it was told last, this time included; None: it is not told now."""
        if kind not in self._told and len(self._told) >= KINDS_MAX:
            self._told = {
                each: told for each, told in self._told.items() if now_ms - told[0] < REFUSED_LINE_MS
            }
            if len(self._told) >= KINDS_MAX:
                kind = None
        told_ms, count = self._told.get(kind, (now_ms - REFUSED_LINE_MS, 0))
        if now_ms - told_ms < REFUSED_LINE_MS:
            self._told[kind] = told_ms, count + 1
            return None
        self._told[kind] = now_ms, 0
        return count + 1
