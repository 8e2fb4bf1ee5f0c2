"""What all families say that speak one framing: each command is told by its code, whoever's it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

from replispec.replay.redact.shapes import Shape, shapes
from replispec.wire.framings import SPEAKERS


@dataclass(frozen=True, slots=True)
class Commands:
    """Headers and bodies by code, of requests and of answers, and what each message holds."""

    request_headers: dict[int, Any] = field(default_factory=dict)
    request_bodies: dict[int, Any] = field(default_factory=dict)
    response_headers: dict[int, Any] = field(default_factory=dict)
    response_bodies: dict[int, Any] = field(default_factory=dict)
    shapes: dict[str, Shape] = field(default_factory=dict)

    def headers(self, *, is_answer: bool) -> Mapping[int, Any]:
        """The typed headers of requests, or of answers by the code of their request."""
        return self.response_headers if is_answer else self.request_headers

    def bodies(self, *, is_answer: bool) -> Mapping[int, Any]:
        """The typed bodies, likewise."""
        return self.response_bodies if is_answer else self.request_bodies


@cache
def commands_in(framing: str) -> Commands:
    """The commands of every family that declares the framing."""
    found = Commands()
    for family in SPEAKERS.get(framing, ()):
        tables = import_module(f"replispec.wire.{family}.commands")
        found.request_headers.update(tables.REQUEST_HEADERS)
        found.request_bodies.update(tables.REQUEST_BODIES)
        found.response_headers.update(tables.RESPONSE_HEADERS)
        found.response_bodies.update(tables.RESPONSE_BODIES)
        for name, shape in shapes(family).items():
            found.shapes.setdefault(name, shape)
    return found
