"""What makes a message whole that this side says: no field is left out that it must have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from replispec.compiler.model import expressions as ex
from replispec.compiler.model.layout import derived_fields, is_constant
from replispec.compiler.model.message import Field, Message, Place, SpecificationError, VersionRange

_NONE: Final = ex.Literal(None)


def require_whole(
    message: Message, said: Mapping[str, object], place: Place, releases: VersionRange | None = None
) -> None:
    """Refuse a message that leaves out what peers of `releases` must be told (None: of the newest one).

    Raises SpecificationError.
    """
    for field in message.fields:
        if said.get(field.name, _NONE) == _NONE and _is_demanded(field, message, releases):
            raise SpecificationError(
                place,
                f"{message.name} must have {field.name}, and nothing says what it is",
                f"write {field.name}: EXPRESSION",
            )


def _is_demanded(field: Field, message: Message, releases: VersionRange | None) -> bool:
    """Whether every message of these releases has this field, and no codec fills it in by itself."""
    if field.versions is not None and not _is_known(field.versions, releases):
        return False
    is_made = is_constant(field) or field.checksum is not None or field.name in derived_fields(message)
    return not (is_made or field.optional or field.nullable or field.when is not None)


def _is_known(versions: VersionRange, releases: VersionRange | None) -> bool:
    """Whether what is sent in `versions` is known to peers of `releases`, or of the newest."""
    return versions.last is None if releases is None else versions.overlaps(releases)
