"""Being known by name servers, which tell clients where topics are and replicas where their master is.

Source: RIP-44 "Master-slave relationship"; apache/rocketmq rocketmq-all-5.4.0, BrokerOuterAPI,
RouteInfoManager.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.rocketmq.remoting.calls import Calls, Failure, Outcome
from replispec.runtime.world import Level, Outbox
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.broker import (
    RegisterBrokerBody,
    RegisterBrokerRequest,
    RegisterBrokerResponse,
    TopicConfigTable,
    UnregisterBrokerRequest,
)
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode


@dataclass(frozen=True, slots=True)
class Announcement:
    """What name servers are told. `broker_id` is 0 for the master, the broker's own id else."""

    cluster_name: str
    broker_name: str
    broker_id: int
    address: str
    ha_address: str
    topics: TopicConfigTable


class NameServers:
    """Tells every name server `current()`, as often as it must be.

    `master_named` gets the addresses of the master, first its own, then that for replication, from every
    answer that has them, and says whether they are those of the right one. `current` returns None while
    nothing may be announced. `announced` gets each time what all of them were sent.
    """

    def __init__(
        self,
        outbox: Outbox,
        calls: Calls,
        addresses: Sequence[str],
        current: Callable[[], Announcement | None],
        master_named: Callable[[str, str, int], bool],
        *,
        period_ms: int,
        announced: Callable[[RegisterBrokerRequest, int], None] | None = None,
    ) -> None:
        self._period_ms = period_ms
        self._announced = announced
        self._outbox = outbox
        self._calls = calls
        self._addresses = tuple(addresses)
        self._current = current
        self._master_named = master_named
        self._due_ms: int | None = None
        self._silent: set[str] = set()

    def announce(self, now_ms: int) -> None:
        """Tell them now, and from now on."""
        said = self._current()
        self._due_ms = now_ms + self._period_ms
        if said is None:
            return
        body = RegisterBrokerBody([], said.topics).encode()
        request = RegisterBrokerRequest(
            broker_name=said.broker_name,
            broker_addr=said.address,
            cluster_name=said.cluster_name,
            ha_server_addr=said.ha_address,
            broker_id=said.broker_id,
            enable_acting_master=False,
            compressed=False,
            body_crc32=zlib.crc32(body) & constants.CRC_MASK,
        )
        if self._announced is not None and self._addresses:
            self._announced(request, now_ms)
        fields = request.to_ext_fields()
        for address in self._addresses:
            self._calls.ask(
                address,
                RequestCode.REGISTER_BROKER,
                self._answer_to(address, said),
                now_ms=now_ms,
                timeout_ms=constants.ANSWER_TIMEOUT_MS,
                ext_fields=fields,
                body=body,
            )

    def leave(self, now_ms: int) -> None:
        """Tell them that the broker stops."""
        said = self._current()
        self._due_ms = None
        if said is not None:
            request = UnregisterBrokerRequest(
                said.broker_name, said.address, said.cluster_name, said.broker_id
            )
            for address in self._addresses:
                fields = request.to_ext_fields()
                self._calls.tell(address, RequestCode.UNREGISTER_BROKER, now_ms=now_ms, ext_fields=fields)

    def ticked(self, now_ms: int) -> None:
        """Tell them again when it is time."""
        if self._due_ms is not None and now_ms >= self._due_ms:
            self.announce(now_ms)

    def deadline_ms(self) -> int | None:
        """When `ticked` has something to do."""
        return self._due_ms

    def _answer_to(self, address: str, said: Announcement) -> Callable[[Outcome, int], None]:
        def answered(outcome: Outcome, now_ms: int) -> None:
            received = self._read(address, outcome)
            if received is None:
                self._again_in(constants.RETRY_MS, now_ms)
            elif said.broker_id != 0:
                master, ha = received.master_addr, received.ha_server_addr
                if not (master and ha and self._master_named(master, ha, now_ms)):
                    self._again_in(constants.MASTER_SEARCH_MS, now_ms)

        return answered

    def _again_in(self, after_ms: int, now_ms: int) -> None:
        if self._due_ms is not None:
            self._due_ms = min(self._due_ms, now_ms + after_ms)

    def _read(self, address: str, outcome: Outcome) -> RegisterBrokerResponse | None:
        """The answer; None, with one line for each time that a name server falls silent, for none."""
        if isinstance(outcome, Failure):
            reason = outcome.reason
        elif outcome.header.code != ResponseCode.SUCCESS:
            reason = outcome.header.remark or str(outcome.header.code)
        else:
            try:
                answer = RegisterBrokerResponse.from_ext_fields(outcome.header.ext_fields or {})
            except RemoteProtocolError as error:
                reason = str(error)
            else:
                self._silent.discard(address)
                return answer
        if address not in self._silent:
            self._silent.add(address)
            self._outbox.note(Level.WARNING, "a name server does not know us", server=address, reason=reason)
        return None
