"""What the suite asks of a family: one object, made of generated tables and a few functions."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from replispec.conformance.encoding import Encoded, Encoder
from replispec.conformance.model import Sent
from replispec.conformance.received import SubjectReader
from replispec.conformance.vocabulary import Release, Vocabulary


@dataclass(frozen=True, slots=True)
class SubjectKind:
    """A kind of subject: what listens at the target, and which parts of it can be judged apart.

    `protocol` is what the target speaks, one that the family's `reader` knows, and `speaks` that in words;
    `question` is what every subject of the kind answers without being prepared. `unknown_command` names the
    code by which a subject says that it does not know a command; None: that answer is judged like any other.
    `success` names the code of an answer that refuses nothing, `forbidden` the one that refuses whoever asks;
    `administrator` is the party whose requests a subject may so refuse. `elsewhere` names the code by which a
    member of a group says that another one leads; None: nobody else can.

    `started` are the roles, in the words of the adapter protocol, that an adapter starts for a run, the
    subject last, and `listens` is what the subject is judged at. A kind that is `played` has no target: its
    cases start subjects themselves, and are the peers that those speak to. `beside` are the addresses of the
    family without which none of its cases can be played.
    """

    name: str
    protocol: str
    speaks: str
    profiles: tuple[str, ...]
    question: Callable[[Release], Sent]
    unknown_command: str | None = None
    success: str = ""
    forbidden: str = ""
    administrator: str = ""
    elsewhere: str | None = None
    started: tuple[str, ...] = ()
    listens: str = "remoting"
    played: bool = False
    beside: tuple[str, ...] = ()


class Account(Protocol):
    """What a replica does and counts on a connection while it takes a log."""

    @property
    def done(self) -> bool:
        """True when everything that was wanted has come."""
        ...

    @property
    def fault(self) -> str:
        """What no log can hold, whatever a case allows; empty when nothing of that came."""
        ...

    def opening(self) -> list[Encoded]:
        """What is sent before anything comes."""
        ...

    def take(self, message: object) -> list[Encoded]:
        """Count one message, None for what is no message, and return what is sent because of it."""
        ...

    def ended(self) -> None:
        """The other side ended the connection."""
        ...

    def counts(self) -> Mapping[str, object]:
        """The account so far, by the names that outcomes compare."""
        ...


@dataclass(frozen=True, slots=True)
class Replication:
    """How `replicate` takes a log: `counts` names what an account holds.

    `introduces` finds the message that a later account starts from; `account` makes one of that message
    (None: none came), the first and the last byte, and what is reported: each, last or none.
    """

    counts: frozenset[str]
    introduces: Callable[[object], bool]
    account: Callable[[object, int, int, str], Account]


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """One family as the suite knows it; lies in `replispec.conformance.<family>.family` as `FAMILY`.

    `addresses` are what a run may know beside the target, where `companion` is spoken, as it is on
    connections that the subject opens. `fresh` gives names and ids that no other case of any run has, out of
    randomness and the time in milliseconds. `default_releases` are those of a case file that says none.
    `served` are the protocols that the suite can listen for, `spoken` those in which it opens connections.
    `frames` are vectors of frames beyond the golden ones. `durations` are the fields of headers that name a
    time: patience multiplies them. `busy` names the code of an answer that refuses a request for now: what
    prepares a case sends it again.
    """

    name: str
    vocabulary: Vocabulary
    kinds: tuple[SubjectKind, ...]
    companion: str
    reader: Callable[[str, Release], SubjectReader]
    encoder: Callable[[Release, int], Encoder]
    fresh: Callable[[random.Random, int], Mapping[str, object]]
    addresses: tuple[str, ...] = ()
    served: tuple[str, ...] = ()
    spoken: tuple[str, ...] = ()
    durations: frozenset[str] = frozenset()
    busy: str = ""
    default_releases: str = ".."
    replication: Replication | None = None
    frames: Callable[[], Iterator[dict[str, Any]]] = field(default=lambda: iter(()))

    def kind(self, name: str) -> SubjectKind:
        """The kind of this name. Raises KeyError."""
        return next(each for each in self.kinds if each.name == name)

    def variables(self) -> frozenset[str]:
        """The variables that every case has."""
        return frozenset((*self.fresh(random.Random(0), 0), "target", *self.addresses))
