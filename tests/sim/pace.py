"""No question without a pause: nobody asks a controller at the speed of the wire, whatever it answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Final

from replispec.runtime.sim import NetworkTap

PIECES_PER_SECOND_MAX: Final = 40
"""Pieces of bytes from one host to one controller in a second. A start, an election and the heartbeat, all
within one second, are about ten; a loop of questions and answers is hundreds."""


class AskingPace:
    """Sees the traffic of a run, and hands it on to `tap`, if there is one."""

    def __init__(self, controllers: Collection[str], tap: NetworkTap | None) -> None:
        self._controllers = frozenset(controllers)
        # Members of a group have more to say to each other.
        self._hosts = frozenset(each.rpartition(":")[0] for each in controllers)
        self._tap = tap
        self.pieces: Counter[tuple[str, str, int]] = Counter()

    def opened(self, dialer: str, listener: str, now_us: int) -> None:
        """A connection is open."""
        if self._tap is not None:
            self._tap.opened(dialer, listener, now_us)

    def carried(self, source: str, target: str, data: bytes, now_us: int) -> None:
        """Bytes have arrived."""
        if target in self._controllers:
            host = source.rpartition(":")[0]
            if host not in self._hosts:
                self.pieces[host, target, now_us // 1_000_000] += 1
        if self._tap is not None:
            self._tap.carried(source, target, data, now_us)

    def ended(self, source: str, target: str, now_us: int, *, is_reset: bool) -> None:
        """One side says nothing more."""
        if self._tap is not None:
            self._tap.ended(source, target, now_us, is_reset=is_reset)

    def judge(self) -> list[str]:
        """Who asked too fast, and when first."""
        worst: dict[tuple[str, str], tuple[int, int]] = {}
        for (host, target, second), count in sorted(self.pieces.items()):
            if count > PIECES_PER_SECOND_MAX:
                worst.setdefault((host, target), (second, count))
        return [
            f"{host} sent {count} pieces to {target} in second {second}, without a pause"
            for (host, target), (second, count) in worst.items()
        ]
