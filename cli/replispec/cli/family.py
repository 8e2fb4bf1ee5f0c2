"""What the command asks of a family: one object, in `replispec.cli.<family>.family` as `FAMILY`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from replispec.cli.frame_text import Words
from replispec.runtime import families
from replispec.runtime.families import FamilyError


@dataclass(frozen=True, slots=True)
class Listeners:
    """Ports on which processes of a family were told to listen; none given: the family's defaults."""

    name_servers: Sequence[int] = ()
    controllers: Sequence[int] = ()
    brokers: Sequence[int] = ()
    replication: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class FrameWords:
    """`words` says what a row of the frames table is, where its column `protocol` has one of `protocols`.

    `ports`: every port of such processes, with what is heard there. `requests`: names of requests by their
    codes, which travel in frames that another family words.
    """

    protocols: tuple[str, ...]
    words: Words
    ports: Callable[[Listeners], Mapping[int, str]] | None = None
    requests: Mapping[int, str] = field(default_factory=dict)


def wordings() -> Mapping[str, Words]:
    """How frames are worded, by protocol. Raises FamilyError for a protocol that two families have."""
    found: dict[str, Words] = {}
    for name in families.with_part("cli"):
        module = families.part("cli", name)
        family: FrameWords = module.FAMILY
        for protocol in family.protocols:
            if protocol in found:
                raise FamilyError(
                    f"{module.__name__}: frames of {protocol} are worded by another family too: rename one"
                )
            found[protocol] = family.words
    return found


@cache
def names_of_guests() -> Mapping[int, str]:
    """Names of the requests that families say in frames of another one, by their codes."""
    found: dict[int, str] = {}
    for name in families.with_part("cli"):
        family: FrameWords = families.part("cli", name).FAMILY
        found |= family.requests
    return found


def ports(listeners: Listeners) -> Mapping[int, str]:
    """Every port of all families, ascending, with what is heard there."""
    found: dict[int, str] = {}
    for name in families.with_part("cli"):
        family: FrameWords = families.part("cli", name).FAMILY
        if family.ports is not None:
            found |= family.ports(listeners)
    return dict(sorted(found.items()))
