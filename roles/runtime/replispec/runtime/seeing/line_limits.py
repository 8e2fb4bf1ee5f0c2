"""How many lines of one kind the log takes: what a peer can provoke must not fill a disk."""

from __future__ import annotations

from typing import Final

WINDOW_US: Final = 10_000_000
ABOUT_ONE_MAX: Final = 20
"""Lines of one kind about one broker, or about none, in a window."""
OF_A_KIND_MAX: Final = 500
"""Lines of one kind in a window, whomever they are about."""


class _Window:
    __slots__ = ("about", "count", "left_out", "start_us")

    def __init__(self, start_us: int) -> None:
        self.start_us = start_us
        self.count = 0
        self.left_out = 0
        self.about: dict[object, int] = {}


class LineLimits:
    """Admits lines by what they say; `what` is one of the few texts that we write."""

    def __init__(self) -> None:
        self._windows: dict[str, _Window] = {}

    def admits(self, what: str, about: object, now_us: int) -> bool:
        """Whether this line is written, or counted as left out."""
        window = self._windows.get(what)
        if window is None or now_us - window.start_us >= WINDOW_US:
            window = self._windows[what] = _Window(now_us)
        count = window.about.get(about, 0)
        if count >= ABOUT_ONE_MAX or window.count >= OF_A_KIND_MAX:
            window.left_out += 1
            return False
        window.count += 1
        window.about[about] = count + 1
        return True

    def take_left_out(self, now_us: int, *, at_end: bool = False) -> list[tuple[str, int]]:
        """Of windows that are over, or of all: which lines were left out, and how many."""
        over = [
            what for what, window in self._windows.items() if at_end or now_us - window.start_us >= WINDOW_US
        ]
        found = [(what, self._windows.pop(what).left_out) for what in over]
        return [(what, count) for what, count in found if count]
