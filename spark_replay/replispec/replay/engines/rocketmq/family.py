"""How captures of Apache RocketMQ are judged: as a whole, or spread."""

from __future__ import annotations

from replispec.replay.engines.family import JudgedFamily
from replispec.replay.engines.results import CaptureResult, Options
from replispec.replay.engines.rocketmq.queues import about, in_order, judged_topics, topics_of
from replispec.replay.engines.rocketmq.spread import SPREAD
from replispec.replay.engines.rocketmq.told import result_of
from replispec.replay.events.rocketmq.stream_events import join
from replispec.replay.events.tables import Events
from replispec.replay.judges.rocketmq.judge import judge_joined, named_learners
from replispec.replay.report.summary import CaptureRow


def _judge(capture: CaptureRow, events: Events, options: Options) -> CaptureResult:
    """Judge the events of one capture (all of them) and tell its story."""
    learners = named_learners(options.learners)
    joined = join(events, learners, all_ack=options.all_ack)
    result = result_of(capture, joined, judge_joined(capture.file, joined, learners), options)
    if topics := topics_of(events):
        queues = judged_topics(capture.file, events, [about(topics, events)])
        result.findings = in_order([*result.findings, *queues])
    return result


FAMILY = JudgedFamily(_judge, SPREAD)
