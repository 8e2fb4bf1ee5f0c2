"""A remoting command: one frame with its header decoded, whichever encoding the sender chose.

Each side writes its own encoding, in requests and in answers, so every frame says which it is.
Source: RemotingCommand, NettyDecoder (apache/rocketmq rocketmq-all-5.4.0).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from replispec.runtime.primitives.releases import Release as PeerRelease
from replispec.wire.rocketmq.codes import Release, RemotingFlag, SerializeType
from replispec.wire.rocketmq.constants import IMPLEMENTATION
from replispec.wire.rocketmq.remoting import RemotingFrame, RemotingFrameFixed, RemotingHeader

# Plain numbers: every command is asked, and an enumeration's operators are slow.
_ANSWER: Final = int(RemotingFlag.RESPONSE)
_UNANSWERED: Final = int(RemotingFlag.RESPONSE | RemotingFlag.ONEWAY)
_RELEASES: Final = {
    int(each): (IMPLEMENTATION, tuple(int(part) for part in each.name.removeprefix("V").split("_")))
    for each in Release
}
_BINARY: Final = SerializeType.ROCKETMQ
_KINDS: Final = {int(kind): kind for kind in SerializeType}


@dataclass(slots=True)
class Command:
    """Header and body (bytes, empty when absent) of one command.

    Typed headers are views on `header.ext_fields`, which keeps all keys in the order received.
    """

    header: RemotingHeader
    body: bytes = b""
    serialize_type: SerializeType = SerializeType.JSON

    @property
    def is_answer(self) -> bool:
        """True for an answer; its header's code is a ResponseCode."""
        return bool(self.header.flag & _ANSWER)

    @property
    def wants_answer(self) -> bool:
        """True for a request that is not one-way."""
        return not self.header.flag & _UNANSWERED

    @property
    def release(self) -> PeerRelease | None:
        """The release of whoever sent it, as its header says; None for one that is not known."""
        return _RELEASES.get(self.header.version)

    def encode(self) -> bytes:
        """The frame. Raises LocalProtocolError when a value does not fit the chosen encoding."""
        return RemotingFrame(self.serialize_type, self._encoded_header(), self.body).encode()

    def encode_before_body(self) -> bytes:
        """The frame up to its body, for bodies that many frames share. Raises LocalProtocolError likewise."""
        header = self._encoded_header()
        frame = RemotingFrame(self.serialize_type, header)
        fixed = RemotingFrameFixed.decode(frame.encode())
        return fixed._replace(total_length=fixed.total_length + len(self.body)).encode() + header

    def _encoded_header(self) -> bytes:
        is_binary = self.serialize_type is _BINARY
        return self.header.encode_binary() if is_binary else self.header.encode_json()


def decode_command(data: bytes) -> Command:
    """The command that one whole frame is. Raises RemoteProtocolError when it breaks the protocol."""
    frame = RemotingFrame.decode(data)
    kind = _KINDS[frame.serialize_type]
    binary = kind is _BINARY
    header = (
        RemotingHeader.decode_binary(frame.header) if binary else RemotingHeader.decode_json(frame.header)
    )
    return Command(header, frame.body, kind)
