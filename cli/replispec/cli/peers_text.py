"""What peers said, as it may stand on a terminal: nothing in it acts, or makes lines of its own.

A text for people is made of names of the wire and of ends of lines and tabs of ours; once they are joined
nobody can tell them apart. So the names are spelt out before, in a copy of what was said, and rows keep it
as it is, for JSON and YAML.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Final, ParamSpec

import click

from replispec.cli.shown import Display
from replispec.runtime.primitives.visible import visible

P = ParamSpec("P")
_PLAIN: Final = (int, float, bool, bytes, type(None))


def of_peers(told: Callable[P, Display]) -> Callable[P, Display]:
    """Put around what makes a text of what peers said."""

    @wraps(told)
    def for_people(*said: P.args, **others: P.kwargs) -> Display:
        found = told(*said, **others)
        spelt = Spelling()
        copied: Any = [spelt.copied(each) for each in said]
        named: Any = {name: spelt.copied(each) for name, each in others.items()}
        if not spelt.has_spelt:
            return found
        shown = told(*copied, **named)
        return dataclasses.replace(found, text=shown.text, faults=shown.faults)

    return for_people


def spelt_out(text: str) -> str:
    """One line of what somebody else said."""
    return visible(text, len(text))


def say(text: str, *, err: bool = False) -> None:
    """Print one line, in which names of peers may stand."""
    click.echo(spelt_out(text), err=err)


class Spelling:
    """Copies values with every text in them spelt out. What is one object stays one."""

    def __init__(self) -> None:
        self.has_spelt = False
        self._made: dict[int, Any] = {}

    def copied(self, value: Any) -> Any:
        """The value itself where there is nothing to spell out. AssertionError: a kind that is not known."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, _PLAIN):
            return value
        if id(value) not in self._made:
            self._made[id(value)] = self._copy(value)
        return self._made[id(value)]

    def _text(self, text: str) -> str:
        if text.isprintable():
            return text
        self.has_spelt = True
        return spelt_out(text)

    def _copy(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {self.copied(key): self.copied(each) for key, each in value.items()}
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*map(self.copied, value))
        if isinstance(value, list | tuple | set | frozenset):
            return type(value)(map(self.copied, value))
        if isinstance(value, Exception):
            return type(value).__new__(type(value), *map(self.copied, value.args))
        assert dataclasses.is_dataclass(value), f"nobody can spell out a {type(value).__name__}"
        made = object.__new__(type(value))
        for each in dataclasses.fields(value):
            object.__setattr__(made, each.name, self.copied(getattr(value, each.name)))
        return made
