"""What the suite asks of the family: one kind of subject, messages of two streams."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

from replispec.conformance.encoding import Encoder
from replispec.conformance.family import Family, SubjectKind
from replispec.conformance.model import Sent
from replispec.conformance.received import StreamReader, SubjectReader
from replispec.conformance.vocabulary import Release, Vocabulary
from replispec.wire.toy.lease import LeaseAsked, LeaseGranted, LeaseRefused
from replispec.wire.toy.streams import KEEPER

MESSAGES: Final = {each.__name__: each for each in (LeaseAsked, LeaseGranted, LeaseRefused)}
VOCABULARY: Final = Vocabulary("toy", {(1,): 1}, messages=MESSAGES)


def fresh(randomness: random.Random, now_ms: int) -> Mapping[str, object]:
    """Two askers that no other case has."""
    first = randomness.randrange(1, 2**62)
    return {"now": now_ms, "asker1": first, "asker2": first + 1}


def question(_: Release) -> Sent:
    """What every keeper answers."""
    return Sent(message=LeaseAsked.__name__, fields={"holder": 1})


def reader(_protocol: str, _release: Release) -> SubjectReader:
    """A reader of what a keeper writes."""
    return StreamReader(KEEPER, VOCABULARY)


def encoder(_release: Release, _first: int) -> Encoder:
    """An encoder of what a case says."""
    return Encoder(VOCABULARY)


FAMILY: Final = Family(
    name="toy",
    vocabulary=VOCABULARY,
    kinds=(SubjectKind("lease-keeper", "lease", "leases", ("core",), question),),
    companion="lease",
    reader=reader,
    encoder=encoder,
    fresh=fresh,
)
