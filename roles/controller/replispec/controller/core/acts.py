"""What comes of a decision."""

from __future__ import annotations

from dataclasses import dataclass

from replispec.runtime.remoting import Prepared

ExtFields = dict[str, str | None]


@dataclass(frozen=True, slots=True)
class Answer:
    """What whoever asked is answered: a ResponseCode, header fields in Java's order, a body."""

    code: int
    ext_fields: ExtFields | None = None
    body: bytes = b""
    remark: str | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """Something is on record now; `what` is for people."""

    what: str


@dataclass(frozen=True, slots=True)
class Notify:
    """All living brokers of the set are to be told who is master."""


Act = Answer | Prepared | Recorded | Notify
