"""What comes of a decision."""

from __future__ import annotations

from dataclasses import dataclass

from replispec.runtime.rocketmq.remoting import Prepared
from replispec.runtime.rocketmq.remoting.answers import Answer, ExtFields


@dataclass(frozen=True, slots=True)
class Recorded:
    """Something is on record now; `what` is for people."""

    what: str


@dataclass(frozen=True, slots=True)
class Notify:
    """All living brokers of the set are to be told who is master."""


Act = Answer | Prepared | Recorded | Notify

__all__ = ["Act", "Answer", "ExtFields", "Notify", "Recorded"]
