"""A broker that does nothing but get an identity and register, again and again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from replispec.runtime.rocketmq.membership import Controllers, IdentityFiles, Registration
from replispec.runtime.rocketmq.remoting import Calls
from replispec.runtime.storage import FilesReader
from replispec.runtime.world import Effect, Event, Outbox, Started, Writes
from replispec.wire.rocketmq.options import BrokerOptions
from tests.playbook import deliver

REGISTER_MS = 700
FIND_MS = 300
OPTIONS = BrokerOptions(broker_name="set")


class Registrar:
    """Registers at one controller, or at whoever leads of `others` and it; `ids` gets what it was called
    after each registration."""

    def __init__(
        self,
        files: FilesReader,
        controller: str,
        address: str,
        ids: list[int],
        *,
        others: Sequence[str] = (),
    ) -> None:
        self._address = address
        self._ids = ids
        self._outbox = Outbox()
        self._writes = Writes(self._outbox)
        self._calls = Calls(self._outbox)
        self._controllers = Controllers(self._calls, [controller, *others], timeout_ms=1_000)
        self._registration = Registration(
            self._outbox,
            self._writes,
            self._controllers,
            IdentityFiles(files, "c", "set"),
            cluster_name="c",
            broker_name="set",
            options=OPTIONS,
            registered=lambda *_: ids.append(self._registration.broker_id),
            failed=lambda _: None,
        )
        self._begin_ms = 0
        self._find_ms = 0

    @property
    def listeners(self) -> Mapping[str, str]:
        """None."""
        return {}

    def deadline_ms(self) -> int | None:
        """The next thing to do."""
        times = (
            self._begin_ms,
            self._find_ms,
            self._registration.deadline_ms(),
            self._calls.deadline_ms(),
        )
        return min(each for each in times if each is not None)

    def receive(self, event: Event) -> Sequence[Effect]:
        """Take one event."""
        now_ms = event.now_ms
        deliver(self._calls, event, self._writes)
        if isinstance(event, Started):
            self._begin_ms = self._find_ms = now_ms
        if now_ms >= self._find_ms:
            self._find_ms = now_ms + FIND_MS
            self._controllers.find_leader(lambda *_: None, now_ms)
        if now_ms >= self._begin_ms:
            self._begin_ms = now_ms + REGISTER_MS
            self._registration.begin(self._address, now_ms)
        self._registration.ticked(now_ms)
        self._calls.ticked(now_ms)
        return self._outbox.take()
