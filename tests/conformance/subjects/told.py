"""What a scripted broker knows of its set and of its replicas, and what it reads in answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import trio

from replispec.conformance.received import ReceivedAnswer
from replispec.conformance.rocketmq.names import VOCABULARY
from tests.conformance.subjects.asking import RELEASE
from tests.conformance.subjects.following import PAUSE_S

NOBODY: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Told:
    """What a controller says of a broker set; master 0 is nobody."""

    master: int
    epoch: int
    members: frozenset[int]
    set_epoch: int
    missed: bool = False


@dataclass
class Link:
    """One replica's connection."""

    stream: trio.SocketStream
    broker_id: int = 0
    acknowledged: int = -1


@dataclass
class Office:
    """What a broker believes of its set."""

    master: int = 0
    epoch: int = -1
    members: frozenset[int] = NOBODY
    set_epoch: int = 0
    let_go: bool = False
    began_s: float = 0.0
    proposed: frozenset[int] = NOBODY
    unanswered: bool = False
    doubtful: bool = False
    doubt_until_s: float = 0.0
    held_until_s: float = 0.0
    refused: frozenset[int] = NOBODY
    refused_until_s: float = 0.0
    pause_s: float = PAUSE_S


def told_of(answer: ReceivedAnswer) -> Told:
    """What an answer says of the set."""
    body = answer.body if isinstance(answer.body, Mapping) else {}
    number = body.get("syncStateSetEpoch", answer.header.get("syncStateSetEpoch"))
    members = frozenset(int(each) for each in body.get("syncStateSet") or ())
    master, epoch = (int(str(answer.header.get(each) or 0)) for each in ("masterBrokerId", "masterEpoch"))
    missed = str(answer.header.get("masterMissed")) == "true"
    return Told(master, epoch, members, int(number or 0), missed)


def name_of(answer: ReceivedAnswer | None) -> str:
    """What its code is called; empty for no answer."""
    return "" if answer is None else VOCABULARY.response_name(answer.code, RELEASE)
