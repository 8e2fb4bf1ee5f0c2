"""The questions that a leader was asked and has not answered yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from replispec.runtime.raft.ready import MemberReady


class Questions:
    """Each has a ticket. The machine says what becomes of the one that was asked last."""

    def __init__(self) -> None:
        self._tickets = 0
        self._asked: deque[int] = deque()
        # Those that wait: of a round, each with up to where is to be applied; and those of no round yet.
        self._waiting: deque[tuple[int, int, int]] = deque()
        self._put_off: list[int] = []
        self._answered: list[tuple[int, int]] = []
        self._unread: list[int] = []

    def ticket(self) -> int:
        """A ticket that nobody had."""
        self._tickets += 1
        return self._tickets

    def asked(self, ticket: int) -> None:
        """The machine is asked next."""
        self._asked.append(ticket)

    def register(self, round_: int, commit: int) -> None:
        """It waits until a majority has answered this round."""
        self._waiting.append((round_, commit, self._asked.popleft()))

    def put_off(self) -> None:
        """It waits for an entry of this term to be agreed on."""
        self._put_off.append(self._asked.popleft())

    def put_off_until_now(self) -> Sequence[int]:
        """Those that were put off, to be asked again."""
        waiting, self._put_off = self._put_off, []
        return waiting

    @property
    def oldest_round(self) -> int | None:
        """The round for which the question waits that has waited longest."""
        return self._waiting[0][0] if self._waiting else None

    def settle(self, round_: int) -> None:
        """A majority has answered this round."""
        while self._waiting and self._waiting[0][0] <= round_:
            _, commit, ticket = self._waiting.popleft()
            self._answered.append((ticket, commit))

    def give_up(self) -> None:
        """This member no longer leads."""
        self._unread += self._put_off
        self._unread += (ticket for _, _, ticket in self._waiting)
        self._put_off = []
        self._waiting.clear()

    def hand_out(self) -> tuple[Sequence[tuple[int, int]], Sequence[int]]:
        """Those that are answered, each with up to where is to be applied before, and those that are not."""
        handed = tuple(self._answered), tuple(self._unread)
        self._answered, self._unread = [], []
        return handed

    def refused(self, ready: MemberReady) -> None:
        """What was handed out is not on the disk: nothing is answered."""
        self.give_up()
        answered = [ticket for ticket, _ in (*ready.reads, *self._answered)]
        self._answered, self._unread = [], [*ready.unread, *answered, *self._unread]
