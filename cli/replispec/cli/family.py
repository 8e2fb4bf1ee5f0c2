"""What the command asks of a family: one object, in `replispec.cli.<family>.family` as `FAMILY`."""

from collections.abc import Mapping
from dataclasses import dataclass

from replispec.cli.frame_text import Words
from replispec.runtime import families
from replispec.runtime.families import FamilyError


@dataclass(frozen=True, slots=True)
class FrameWords:
    """`words` says what a row of the frames table is, where its column `protocol` has one of `protocols`."""

    protocols: tuple[str, ...]
    words: Words


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
