"""Version ranges such as `implementation@5.1.1..5.3.3`: which releases of an implementation are meant."""

from __future__ import annotations

import re

from replispec.compiler.model.message import Place, SpecificationError, VersionRange

_RANGE = re.compile(r"(?P<implementation>[a-z][a-z0-9-]*)@(?P<first>[0-9.]*?)\.\.(?P<last>[0-9][0-9.]*)?")


def parse_versions(text: str, place: Place | str) -> VersionRange | None:
    """The range that `text` names, or None for the empty text (all releases).

    Raises SpecificationError when the text is not of the form IMPLEMENTATION@FIRST..LAST, in which
    FIRST or LAST may be absent, or when the range is empty.
    """
    if not text:
        return None
    match = _RANGE.fullmatch(text)
    if match is None:
        raise SpecificationError(
            place, f"{text!r} is not a version range", "write implementation@first..last, as ours@5.1.1.."
        )
    first, last = (_version(match[name], place) for name in ("first", "last"))
    if first is not None and last is not None and first > last:
        raise SpecificationError(place, f"{text!r} holds no release", "put the older release first")
    return VersionRange(match["implementation"], first, last)


def _version(text: str | None, place: Place | str) -> tuple[int, ...] | None:
    if not text:
        return None
    parts = text.split(".")
    if not all(part.isdigit() for part in parts):
        raise SpecificationError(place, f"{text!r} is not a release", "write numbers between dots, as 5.1.1")
    return tuple(map(int, parts))
