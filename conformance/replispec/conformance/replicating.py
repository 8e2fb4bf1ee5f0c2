"""Taking a log as a replica does, up to the byte that a step names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from replispec.conformance.encoding import Encoded
from replispec.conformance.family import Account
from replispec.conformance.received import Breach, Ended, ReceivedMessage
from replispec.conformance.step_faults import StepBreached
from replispec.conformance.wires import Wire

Out = Callable[[Wire, Encoded, list[bytes], float], Awaitable[None]]
"""Sends bytes over a connection, in pieces with a pause between them."""


async def replicate(account: Account, wire: Wire, out: Out, limit_s: float) -> None:
    """Take transfers and report, until the account is done or time is over. Raises StepBreached."""
    for encoded in account.opening():
        await out(wire, encoded, [encoded.data], 0.0)
    with trio.move_on_after(limit_s):
        while not account.done:
            received = await wire.next()
            if isinstance(received, Ended):
                account.ended()
                return
            if isinstance(received, Breach):
                raise StepBreached(received.reason)
            for encoded in account.take(received.value if isinstance(received, ReceivedMessage) else None):
                await out(wire, encoded, [encoded.data], 0.0)
