"""What a machine of a system asks of its role, and the one instance that it serves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class RoleKnows:
    """What the machines of an instance ask of their role, answered as the system says."""

    __slots__ = ("_ask",)

    def __init__(self, ask: Callable[[str], Any]) -> None:
        self._ask = ask

    def __getattr__(self, name: str) -> Any:
        return self._ask(name)


class Served:
    """The one instance that a machine of a system serves, whatever it is called."""

    __slots__ = ("_local", "_variables")

    def __init__(self, variables: Any, local: RoleKnows) -> None:
        self._variables = variables
        self._local = local

    def known(self, _instance: str, /) -> tuple[Any, RoleKnows]:
        """What is remembered, and what only the role knows."""
        return self._variables, self._local
