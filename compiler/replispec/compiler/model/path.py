"""Paths as the compiler sees them: where something is kept, what it holds, and who does what with it."""

from __future__ import annotations

from dataclasses import dataclass

from replispec.compiler.model.message import Place, VersionRange

LIVES = ("PERSISTENT", "EPHEMERAL", "SEQUENTIAL", "EPHEMERAL_SEQUENTIAL")
"""How long it is there: until it is removed, or until whoever made it is gone; the store may number it."""
CHANGES = ("by version", "at any time")
"""How its value is changed: only where it is still what was read, or whatever it is."""
WATCHES = ("data", "exists", "children")
"""What a watch is for."""


@dataclass(frozen=True, slots=True)
class PathSpec:
    """One path of a layout.

    `fields` are the names in `template` with the digits of each: 0 for as many as a number needs, None for a
    text. `holds` is a message, or empty; parties do what stands under their names.
    """

    name: str
    layout: str
    template: str
    about: str
    place: Place
    fields: tuple[tuple[str, int | None], ...]
    holds: str
    life: str
    made_by: tuple[str, ...]
    removed_by: tuple[str, ...]
    changed_by: tuple[tuple[str, str], ...]
    watched_by: tuple[tuple[str, str], ...]
    versions: VersionRange | None
    clauses: tuple[str, ...]

    @property
    def constant(self) -> str:
        """Its name in generated code."""
        return f"{self.layout}_{self.name}".upper()
