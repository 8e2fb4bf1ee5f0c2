"""Requests and answers of Apache RocketMQ: a bit of the flag tells an answer, which has its request's opaque.

Source: RemotingCommand, NettyRemotingAbstract (apache/rocketmq rocketmq-all-5.4.0).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from replispec.replay.frames.rocketmq.readers import REMOTING
from replispec.replay.pairing.delivery import Delivered, Integers
from replispec.replay.pairing.pairs import ANSWER, EVERYTHING, ONE_WAY, PAIRING, REQUEST, Correlation
from replispec.runtime.primitives.invariants import Evidence, Judge
from replispec.runtime.rocketmq import rules
from replispec.wire.rocketmq.codes import RemotingFlag
from replispec.wire.rocketmq.invariants import INVARIANTS


def _roles(frames: Delivered) -> Integers:
    flags = frames.integers("flag")
    asking = np.where(flags & RemotingFlag.ONEWAY != 0, ONE_WAY, REQUEST)
    roles: Integers = np.where(flags & RemotingFlag.RESPONSE != 0, ANSWER, asking)
    return roles


def _judge(observer: Callable[[Evidence], None]) -> Judge:
    return Judge(INVARIANTS[PAIRING], rules, (EVERYTHING,), observer=observer)


CORRELATION = Correlation(frozenset({REMOTING}), "opaque", _roles, _judge)
