"""Commands that belong to a family, found where it keeps them, and imported when they are run."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

import click

from replispec.cli.speaking import speaks
from replispec.runtime import families

PART = "admin"


class FamilyGroup(click.Group):
    """A group that has the commands of all families beside its own.

    A family's part `admin` of this room has `COMMANDS`: the module of each command, by its name; the command
    is `command` there.
    """

    def list_commands(self, context: click.Context) -> list[str]:
        """Its own, then those of families, as they are listed there."""
        return [*super().list_commands(context), *_places()]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """Its own, or a family's."""
        own = super().get_command(context, name)
        return own if own is not None else found(name)


def found(name: str) -> click.Command | None:
    """The command of a family; None when there is none of this name."""
    place = _places().get(name)
    if place is None:
        return None
    command: click.Command = speaks(import_module(place).command)
    return command


def _places() -> Mapping[str, str]:
    places: dict[str, str] = {}
    for family in families.with_part("cli", PART):
        places |= families.part("cli", family, PART).COMMANDS
    return places
