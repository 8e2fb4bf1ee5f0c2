"""Which controllers there are, and which of them is active.

Source: RIP-44 "Interface Design/Change"; apache/rocketmq rocketmq-all-5.4.0, ReplicasManager, BrokerOuterAPI.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.remoting.calls import Calls, Failure, Outcome
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.controller import GetMetadataResponse

TIMEOUT_MS = 3_000
"""How long a controller is waited for."""


class Controllers:
    """Asks controllers. `leader` is the address of the active one, None while nobody knows."""

    def __init__(self, calls: Calls, addresses: Sequence[str], timeout_ms: int = TIMEOUT_MS) -> None:
        self._calls = calls
        self._timeout_ms = timeout_ms
        self.addresses = tuple(addresses)
        self.leader: str | None = None

    def find_leader(self, then: Callable[[GetMetadataResponse | None, int], None], now_ms: int) -> None:
        """Ask every controller; `then` hears each answer, None for one that said nothing of use."""

        def answered(outcome: Outcome, at_ms: int) -> None:
            told = metadata(outcome)
            if told is not None and told.controller_leader_address:
                self.leader = told.controller_leader_address
            then(told, at_ms)

        code = RequestCode.CONTROLLER_GET_METADATA_INFO
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


def metadata(outcome: Outcome) -> GetMetadataResponse | None:
    """What a controller said about the group; None when it said nothing of use."""
    if isinstance(outcome, Failure) or outcome.header.code != ResponseCode.SUCCESS:
        return None
    try:
        return GetMetadataResponse.from_ext_fields(outcome.header.ext_fields or {})
    except RemoteProtocolError:
        return None
