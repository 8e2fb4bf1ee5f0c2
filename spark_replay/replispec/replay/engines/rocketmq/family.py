"""How captures of Apache RocketMQ are judged, and what is told of them."""

from __future__ import annotations

from replispec.replay.engines.family import JudgedFamily
from replispec.replay.engines.results import CaptureResult, Options
from replispec.replay.events.tables import Events
from replispec.replay.judges.rocketmq.judge import judge_capture
from replispec.replay.report.rocketmq.answers import answers
from replispec.replay.report.rocketmq.causes import loss_causes
from replispec.replay.report.rocketmq.failovers import failovers
from replispec.replay.report.rocketmq.latencies import latencies
from replispec.replay.report.rocketmq.lost_messages import lost_sends
from replispec.replay.report.rocketmq.overlaps import overlaps
from replispec.replay.report.rocketmq.story import switches, timelines
from replispec.replay.report.summary import CaptureRow


def _judge(capture: CaptureRow, events: Events, options: Options) -> CaptureResult:
    """Judge the events of one capture (all of them) and tell its story."""
    file = capture.file
    judgement = judge_capture(file, events, options.learners, all_ack=options.all_ack)
    joined = judgement.joined
    span = (capture.first_time_ns or 0, capture.last_time_ns or 0)
    return CaptureResult(
        capture,
        judgement.findings,
        judgement.losses,
        judgement.sends,
        switches(file, joined),
        timelines(joined, span, file, judgement.findings, judgement.losses),
        failovers(file, joined),
        latencies(file, joined.events),
        lost_sends(file, joined.sends, judgement.losses),
        loss_causes(file, joined, judgement.losses, all_ack=options.all_ack),
        overlaps(file, joined),
        answers(file, joined.events),
    )


FAMILY = JudgedFamily(_judge)
