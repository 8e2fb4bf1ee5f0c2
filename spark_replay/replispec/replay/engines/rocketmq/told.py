"""What is told of a capture of Apache RocketMQ that was judged."""

from __future__ import annotations

from replispec.replay.engines.results import CaptureResult, Options
from replispec.replay.judges.rocketmq.judge import Judgement
from replispec.replay.report.rocketmq.answers import answers
from replispec.replay.report.rocketmq.causes import loss_causes
from replispec.replay.report.rocketmq.failovers import failovers
from replispec.replay.report.rocketmq.latencies import latencies
from replispec.replay.report.rocketmq.lost_messages import lost_sends
from replispec.replay.report.rocketmq.overlaps import overlaps
from replispec.replay.report.rocketmq.story import switches, timelines
from replispec.replay.report.summary import CaptureRow


def result_of(capture: CaptureRow, judgement: Judgement, options: Options) -> CaptureResult:
    """The verdicts of a capture with its story."""
    file = capture.file
    joined = judgement.joined
    lost = joined.sends.take(judgement.lost.each)
    span = (capture.first_time_ns or 0, capture.last_time_ns or 0)
    return CaptureResult(
        capture,
        judgement.findings,
        judgement.losses,
        judgement.sends,
        switches(file, joined),
        timelines(joined, span, file, judgement.findings, judgement.losses, lost),
        failovers(file, joined),
        latencies(file, joined.events),
        lost_sends(file, joined.sends, judgement.losses, judgement.lost),
        loss_causes(file, joined, judgement.losses, lost, all_ack=options.all_ack),
        overlaps(file, joined),
        answers(file, joined.events),
    )
