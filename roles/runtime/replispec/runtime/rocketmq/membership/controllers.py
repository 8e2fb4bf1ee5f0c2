"""Which controllers there are, and which of them is active.

Source: RIP-44 "Interface Design/Change"; apache/rocketmq rocketmq-all-5.4.0, ReplicasManager, BrokerOuterAPI.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from replispec.runtime.rocketmq.membership.answers import read_quietly
from replispec.runtime.rocketmq.remoting.calls import Calls, Outcome
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.machines.replicas_manager import LeaderTold
from replispec.wire.rocketmq.machines.replicas_manager_wire import outcome_of

TIMEOUT_MS = 3_000
"""How long a controller is waited for."""


class Controllers:
    """Asks controllers. `leader` is the address of the active one, None while nobody knows."""

    def __init__(self, calls: Calls, addresses: Sequence[str], timeout_ms: int = TIMEOUT_MS) -> None:
        self._calls = calls
        self._timeout_ms = timeout_ms
        self.addresses = tuple(addresses)
        self.leader: str | None = None

    def find_leader(self, then: Callable[[LeaderTold | None, int], None], now_ms: int) -> None:
        """Ask every controller; `then` is called with each answer, None for one that is of no use."""
        code = RequestCode.CONTROLLER_GET_METADATA_INFO

        def answered(outcome: Outcome, at_ms: int) -> None:
            event, _ = read_quietly(outcome, lambda *answer: outcome_of(code, *answer))
            told = event if isinstance(event, LeaderTold) else None
            if told is not None and told.controller_leader_address:
                self.leader = told.controller_leader_address
            then(told, at_ms)

        for address in self.addresses:
            self._calls.ask(address, code, answered, now_ms=now_ms, timeout_ms=self._timeout_ms)

    def ask(
        self,
        code: RequestCode,
        request: Any,
        then: Callable[[Outcome, int], None],
        now_ms: int,
        body: bytes = b"",
    ) -> bool:
        """Ask the active controller; False, and nothing is asked, while nobody knows which it is."""
        if self.leader is None:
            return False
        fields = request.to_ext_fields()
        timeout_ms = self._timeout_ms
        self._calls.ask(
            self.leader, code, then, now_ms=now_ms, timeout_ms=timeout_ms, ext_fields=fields, body=body
        )
        return True

    def tell_all(self, code: RequestCode, request: Any, now_ms: int) -> None:
        """Tell every controller, active or not."""
        fields = request.to_ext_fields()
        for address in self.addresses:
            self._calls.tell(address, code, now_ms=now_ms, ext_fields=fields)
