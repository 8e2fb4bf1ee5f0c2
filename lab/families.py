"""What the lab and the benchmarks are told of a family: one object each, loaded when first asked for."""

from __future__ import annotations

from argparse import ArgumentParser
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from replispec.runtime import families

if TYPE_CHECKING:
    from lab.family import LabFamily


def names(room: str = "lab") -> tuple[str, ...]:
    """The families that say something to the lab, or to `benchmarks`, in alphabetical order."""
    return tuple(name for name in families.names() if _says_something(f"{room}.{name}"))


def _says_something(folder: str) -> bool:
    """True when the folder of a family is there, and has the module that is asked."""
    return find_spec(folder) is not None and find_spec(f"{folder}.family") is not None


def in_the_lab(family: str) -> LabFamily:
    """What the lab is told of a family."""
    found: LabFamily = import_module(f"lab.{family}.family").FAMILY
    return found


def with_part(part: str) -> tuple[str, ...]:
    """The families that have this part of what the lab is told, in alphabetical order."""
    return tuple(name for name in names() if getattr(in_the_lab(name), part))


def add_choice(parser: ArgumentParser, room: str = "lab", part: str = "") -> None:
    """Let a command line say which family it is about, of those that have a part in the lab; the first one
    when it does not."""
    every = with_part(part) if part else names(room)
    parser.add_argument("--family", choices=every, default=every[0], help="of protocols (%(default)s)")
