"""Paths with names in them: of the nodes of a store, and of the files of a folder.

A name stands for a text without a slash, or for a number that is not negative, in as many digits as it needs
or in a fixed number of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from replispec.runtime.primitives.errors import LocalProtocolError

_NAME: Final = re.compile(r"\{([a-z0-9_]+)(?::[a-z0-9]+)?\}")
_NUMBER: Final = "(?:0|[1-9][0-9]{0,18})"


@dataclass(frozen=True, slots=True)
class PathTemplate:
    """One path of a layout.

    `fields` are its names with their digits: None for a text, 0 for as many digits as the number needs.
    `holds` reads what is kept there. Parties do what stands under their names: they make it, change it (by
    version, at any time), watch it (its data, whether it exists, its children), remove it.
    """

    name: str
    template: str
    fields: tuple[tuple[str, int | None], ...]
    life: str
    holds: type | None
    made_by: tuple[str, ...] = ()
    removed_by: tuple[str, ...] = ()
    changed_by: Mapping[str, str] = field(default_factory=dict, hash=False)
    watched_by: Mapping[str, str] = field(default_factory=dict, hash=False)
    _pattern: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        digits = dict(self.fields)
        pieces = [
            re.escape(piece) if number % 2 == 0 else f"(?P<{piece}>{_piece(digits[piece])})"
            for number, piece in enumerate(_NAME.split(self.template))
        ]
        object.__setattr__(self, "_pattern", re.compile("".join(pieces)))

    @property
    def is_ephemeral(self) -> bool:
        """True when it goes with the session of whoever made it."""
        return self.life.startswith("EPHEMERAL")

    @property
    def is_sequential(self) -> bool:
        """True when the store adds a number to its name."""
        return self.life.endswith("SEQUENTIAL")

    @property
    def prefix(self) -> str:
        """What a store is given to make the next one of a sequential path whose one name is the number."""
        assert self.is_sequential, self.name
        assert len(self.fields) == 1, self.name
        return self.template[: self.template.index("{")]

    def at(self, **values: str | int) -> str:
        """The path with these values. Raises LocalProtocolError when one lacks, or does not read back."""
        digits = dict(self.fields)
        if values.keys() != digits.keys():
            raise LocalProtocolError(
                f"{self.name}: {sorted(values)} is given, {sorted(digits)} is in its path"
            )
        made = _NAME.sub(lambda found: _written(values[found[1]], digits[found[1]]), self.template)
        if self.read(made) != values:
            raise LocalProtocolError(f"{self.name}: {values} has no path that can be read")
        return made

    def read(self, path: str) -> dict[str, str | int] | None:
        """The values in a path; None when it is another one."""
        found = self._pattern.fullmatch(path)
        if found is None:
            return None
        return {name: found[name] if digits is None else int(found[name]) for name, digits in self.fields}


def _piece(digits: int | None) -> str:
    if digits is None:
        return "[^/]+"
    return f"[0-9]{{{digits}}}" if digits else _NUMBER


def _written(value: str | int, digits: int | None) -> str:
    return f"{value:0{digits}d}" if digits and isinstance(value, int) else str(value)
