"""What a subject was heard to say, for when it says so again, and what it was asked more than once.

Whoever asks waits so long for the answer. On a slow machine that time is over before the answer is read, and
the same is asked again: by the subject, or by the suite, which is then answered twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from replispec.conformance.judging import fitting
from replispec.conformance.model import AllowedOutcome, Answered
from replispec.conformance.received import Received, ReceivedAnswer, ReceivedMessage, ReceivedRequest
from replispec.conformance.values import Variables
from replispec.conformance.vocabulary import Dialect


@dataclass(slots=True)
class EarlierWord:
    """Something that a step took, the outcome that it fitted, and what a step answered."""

    outcome: AllowedOutcome
    received: ReceivedRequest | ReceivedMessage
    answered: Answered | None = None


class Hearing:
    """What steps took of a subject in one case, by connection or service."""

    def __init__(self) -> None:
        self._heard: dict[str, list[EarlierWord]] = {}
        # What the step in hand asked so far, by connection and opaque, and whether it did so again.
        self._asked: set[tuple[str, int]] = set()
        self._repeats = False
        self._late: set[tuple[str, int]] = set()

    def begin(self) -> None:
        """A step begins; what the one before asked again and took no answer to is answered late."""
        if self._repeats:
            self._late |= self._asked
        self._asked, self._repeats = set(), False

    def ask(self, on: str, opaques: Sequence[int]) -> None:
        """The step in hand asks these."""
        self._asked |= {(on, each) for each in opaques}

    def repeat(self) -> None:
        """The step in hand is done once more."""
        self._repeats = True

    def is_late(self, on: str, received: Received) -> bool:
        """Whether this answers what a step before asked, to which another answer was taken."""
        return isinstance(received, ReceivedAnswer) and (on, received.opaque) in self._late

    def take(self, on: str, outcome: AllowedOutcome, received: Received) -> None:
        """A step took this."""
        if isinstance(received, ReceivedAnswer):
            self._asked.discard((on, received.opaque))
        if isinstance(received, ReceivedRequest | ReceivedMessage):
            self._heard.setdefault(on, []).append(EarlierWord(outcome, received))

    def answer(self, on: str, answered: Answered) -> None:
        """A step answered what was taken last."""
        if on in self._heard:
            self._heard[on][-1].answered = answered

    def before(
        self, on: str, received: Received, variables: Variables, dialect: Dialect
    ) -> EarlierWord | None:
        """What this says once more, the newest first; None for what was not said before.

        A request is the same one when it fits what was wanted of it: a new application may have a new check
        code. A message of a stream has nothing but its values.
        """
        for heard in reversed(self._heard.get(on, ())):
            if _is_again(heard, received, variables, dialect):
                return heard
        return None


def _is_again(heard: EarlierWord, received: Received, variables: Variables, dialect: Dialect) -> bool:
    if isinstance(received, ReceivedRequest):
        wanted: Sequence[AllowedOutcome] = [heard.outcome]
        return isinstance(fitting(wanted, received, variables, dialect), AllowedOutcome)
    return isinstance(received, ReceivedMessage) and received == heard.received
