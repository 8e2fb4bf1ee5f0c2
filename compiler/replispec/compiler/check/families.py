"""What families must not share: a framing that two speak tells requests by their codes alone."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from replispec.compiler.model.message import Message, Model, SpecificationError

_ASKED = ("REQUEST", "ONEWAY")


def check_families(models: Iterable[Model]) -> None:
    """Raises SpecificationError for a code that means two requests in one framing."""
    for one, other in combinations(models, 2):
        shared = sorted(one.declared.framings.keys() & other.declared.framings.keys())
        if not shared:
            continue
        first, second = _requests(one), _requests(other)
        for code in sorted(first.keys() & second.keys()):
            ours, theirs = second[code], first[code]
            raise SpecificationError(
                ours.place,
                f"{ours.name}: code {code} is {theirs.name} of {one.family} too, see {theirs.place}",
                f"{shared[0]} is a framing of both and tells requests by code: give one another number, "
                f"or declare a framing of its own in {other.declared.file}",
            )


def _requests(model: Model) -> dict[int, Message]:
    return {
        code: message
        for message in model.messages.values()
        if message.kind in _ASKED
        for code in message.codes
    }
