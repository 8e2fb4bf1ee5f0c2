"""Errors that say whose fault it is, and where.

Two kinds exist and no third: the peer broke the protocol, or we misused our own code. A fault of
the peer ends its connection (or its frame, in a capture) and nothing else; a fault of ours ends
the process, because going on would hide it.
"""

from __future__ import annotations


class ProtocolError(Exception):
    """Common base; never raised itself.

    `offset` is the position in bytes at which the fault was seen, counted from the start of the
    buffer, stream or file that the raising function was given; None when no place exists.
    `reason` is the message without it.
    """

    def __init__(self, message: str, *, offset: int | None = None) -> None:
        if type(self) is ProtocolError:
            raise TypeError(
                "raise RemoteProtocolError or LocalProtocolError: an error says whose fault it is"
            )
        super().__init__(message if offset is None else f"{message} (at byte {offset})")
        self.reason = message
        self.offset = offset


class RemoteProtocolError(ProtocolError):
    """The bytes or messages that came from outside break the protocol."""


class LocalProtocolError(ProtocolError):
    """Our own code asked for something that the protocol does not allow."""
