"""How the frames of RocketMQ are redacted."""

from __future__ import annotations

from replispec.replay.frames.rocketmq.family import FAMILY as FRAMES
from replispec.replay.redact.family import RedactedFamily
from replispec.replay.redact.rocketmq.frames import Frames

FAMILY = RedactedFamily(frozenset(FRAMES.peers), Frames)
