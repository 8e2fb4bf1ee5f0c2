"""One at a time, one in a turn of the loop: for what takes long, whoever wants it."""

from __future__ import annotations

import trio


class Turns:
    """Hands out one turn of the loop after the other, in the order in which they were asked for.

    The loop hears everybody who is ready before it looks at its sockets again. Were all of them to bring as
    much as one event may, somebody who asks little meanwhile would wait for the sum of it.
    """

    def __init__(self) -> None:
        self._waiting = trio.lowlevel.ParkingLot()
        self._is_taken = False
        self._taken = trio.Event()

    async def mine(self) -> None:
        """Return when a turn is the caller's, until it next waits for something."""
        if self._is_taken:
            await self._waiting.park()
        self._is_taken = True
        self._taken.set()

    async def run(self) -> None:
        """Hand out turns, for ever."""
        was_given = False
        while True:
            await self._taken.wait()
            self._taken = trio.Event()
            is_given = bool(self._waiting)
            if is_given:
                # Whoever is woken has it already: nobody comes in between.
                self._waiting.unpark()
            if is_given or was_given:
                # Who was woken last runs in this very turn of the loop, and it may be before or after this.
                self._taken.set()
            else:
                self._is_taken = False
            was_given = is_given
