"""How captures of Apache RocketMQ are judged: as a whole, or spread."""

from __future__ import annotations

from replispec.replay.engines.family import JudgedFamily
from replispec.replay.engines.results import CaptureResult, Options
from replispec.replay.engines.rocketmq.spread import SPREAD
from replispec.replay.engines.rocketmq.told import result_of
from replispec.replay.events.tables import Events
from replispec.replay.judges.rocketmq.judge import judge_capture
from replispec.replay.report.summary import CaptureRow


def _judge(capture: CaptureRow, events: Events, options: Options) -> CaptureResult:
    """Judge the events of one capture (all of them) and tell its story."""
    judgement = judge_capture(capture.file, events, options.learners, all_ack=options.all_ack)
    return result_of(capture, judgement, options)


FAMILY = JudgedFamily(_judge, SPREAD)
