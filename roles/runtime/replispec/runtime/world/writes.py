"""What the parts of one node want written, and what each does when it is."""

from __future__ import annotations

from collections.abc import Callable

from replispec.runtime.storage.operations import Operation
from replispec.runtime.world.events import Persisted, PersistFailed
from replispec.runtime.world.outbox import Outbox

Written = Persisted | PersistFailed
Then = Callable[[Written], None]


class Writes:
    """Turns operations into Persist effects and leads each answer to whoever asked."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._waiting: dict[int, Then] = {}

    def persist(self, *operations: Operation, then: Then) -> None:
        """Have these written in order; `then` is called once, with what became of them."""
        self._waiting[self._outbox.persist(*operations)] = then

    def answered(self, event: Written) -> None:
        """Take the answer to a Persist of this node."""
        self._waiting.pop(event.token)(event)
