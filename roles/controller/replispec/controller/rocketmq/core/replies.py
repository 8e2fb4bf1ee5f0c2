"""What comes of a decision."""

from __future__ import annotations

from replispec.runtime.primitives.bindings import Answer, Notice
from replispec.runtime.primitives.immutable import immutable
from replispec.runtime.rocketmq.remoting import Prepared


@immutable
class Recorded:
    """Something is on record now; `what` is for people."""

    what: str


Reply = Answer | Prepared | Recorded | Notice
"""A notice goes to all living brokers of the set, in the words of each: see `BrokerSet.notices`."""
Replies = tuple[Reply, ...]

__all__ = ["Answer", "Notice", "Recorded", "Replies", "Reply"]
