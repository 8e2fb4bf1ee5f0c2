"""What a role is to the world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from replispec.runtime.storage.operations import NOTHING, Stores
from replispec.runtime.world.effects import Effect
from replispec.runtime.world.events import Event
from replispec.runtime.world.view import RoleView


class Node(Protocol):
    """One role of one process."""

    @property
    def listeners(self) -> Mapping[str, str]:
        """The ADDRESS:PORT of each listener, by the name that Accepted carries. Read once, before Started."""
        ...

    def receive(self, event: Event) -> Sequence[Effect]:
        """Take one event and return its effects, to be carried out in order.

        Never raises for what a peer did: that ends the peer's connection. Whatever it raises is a fault
        of ours and ends the process.
        """
        ...

    def deadline_ms(self) -> int | None:
        """When the node wants a tick, on the clock of the events; None: not before another
        event happens."""
        ...


@dataclass(frozen=True, slots=True)
class Member:
    """A node as a process holds it: the name of its role, and what its Persist effects are carried out on.
    Listeners in `plain_listeners` know no TLS, also in a process whose others do. The node hears what the
    files hold that are `watched`.

    Each role has a factory `members(settings, storage, seed)` that makes them: several roles may live in
    one process. `seed` is all the randomness that a node gets. `view` is how it is seen from outside.
    """

    role: str
    node: Node
    stores: Stores = NOTHING
    view: RoleView | None = None
    plain_listeners: frozenset[str] = frozenset()
    watched: tuple[str, ...] = ()
