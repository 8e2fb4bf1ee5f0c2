"""From bytes to frames and commands: what every reader of a connection needs, without a socket."""

from replispec.runtime.primitives.frames import FrameBuffer
from replispec.runtime.rocketmq.framing.commands import Command, decode_command

__all__ = ["Command", "FrameBuffer", "decode_command"]
