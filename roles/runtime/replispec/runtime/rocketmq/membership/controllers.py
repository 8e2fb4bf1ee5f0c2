"""Which controllers there are, and which of them is active.

Source: RIP-44 "Interface Design/Change"; apache/rocketmq rocketmq-all-5.4.0, ReplicasManager, BrokerOuterAPI.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from replispec.runtime.primitives.bindings import Call
from replispec.runtime.primitives.headers import Header
from replispec.runtime.rocketmq.membership.answers import read_quietly
from replispec.runtime.rocketmq.remoting.calls import Calls, Outcome
from replispec.wire.rocketmq.constants import ANSWER_TIMEOUT_MS
from replispec.wire.rocketmq.machines.replicas_manager import LeaderNamed
from replispec.wire.rocketmq.machines.replicas_manager_wire import leader_asked, outcome_of

_QUESTION: Final = leader_asked()


class Controllers:
    """Asks controllers. `leader` is the address of the active one, None while it is unknown."""

    def __init__(self, calls: Calls, addresses: Sequence[str], timeout_ms: int = ANSWER_TIMEOUT_MS) -> None:
        self._calls = calls
        self._timeout_ms = timeout_ms
        self.addresses = tuple(addresses)
        self.leader: str | None = None

    def find_leader(self, then: Callable[[LeaderNamed | None, int], None], now_ms: int) -> None:
        """Ask every controller; `then` is called with each answer, None for one that is of no use."""

        def answered(outcome: Outcome, at_ms: int) -> None:
            event, _ = read_quietly(outcome, lambda *answer: outcome_of(_QUESTION.code, *answer))
            named = event if isinstance(event, LeaderNamed) else None
            if named is not None and named.controller_leader_address:
                self.leader = named.controller_leader_address
            then(named, at_ms)

        for address in self.addresses:
            self._calls.ask(address, _QUESTION.code, answered, now_ms=now_ms, timeout_ms=self._timeout_ms)

    def ask(self, call: Call[Header], then: Callable[[Outcome, int], None], now_ms: int) -> bool:
        """Ask the active controller; False, and nothing is asked, while it is unknown."""
        if self.leader is None:
            return False
        self._calls.ask(
            self.leader,
            call.code,
            then,
            now_ms=now_ms,
            timeout_ms=self._timeout_ms,
            ext_fields=call.header.to_ext_fields(),
            body=call.body,
        )
        return True

    def tell_all(self, call: Call[Header], now_ms: int) -> None:
        """Tell every controller, active or not, and the active one too where it is none of those configured:
        these may be a part of the group, or a name for it."""
        fields = call.header.to_ext_fields()
        active = () if self.leader is None else (self.leader,)
        for address in dict.fromkeys((*self.addresses, *active)):
            self._calls.tell(address, call.code, now_ms=now_ms, ext_fields=fields)
