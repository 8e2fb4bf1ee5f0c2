"""What is told of a capture of Apache RocketMQ that was judged."""

from __future__ import annotations

from replispec.replay.engines.results import CaptureResult, Options
from replispec.replay.events.rocketmq.stream_events import Judged
from replispec.replay.judges.rocketmq.judge import Judgement
from replispec.replay.report.rocketmq.answers import answers
from replispec.replay.report.rocketmq.causes import loss_causes
from replispec.replay.report.rocketmq.failovers import failovers
from replispec.replay.report.rocketmq.latencies import latencies
from replispec.replay.report.rocketmq.lost_messages import lost_sends
from replispec.replay.report.rocketmq.overlaps import overlaps
from replispec.replay.report.rocketmq.story import switches, timelines
from replispec.replay.report.summary import CaptureRow


def result_of(capture: CaptureRow, joined: Judged, judgement: Judgement, options: Options) -> CaptureResult:
    """The verdicts of a capture with its story."""
    result = told_of(capture, judgement, options)
    result.latencies = latencies(capture.file, joined.events)
    result.overlaps = overlaps(capture.file, joined)
    result.answers = answers(capture.file, joined.events)
    return result


def told_of(capture: CaptureRow, judgement: Judgement, options: Options) -> CaptureResult:
    """What is told of a capture, or of some of its groups, that is about groups."""
    file, own = capture.file, judgement.own
    lost = own.sends.take(judgement.lost.each)
    span = (capture.first_time_ns or 0, capture.last_time_ns or 0)
    return CaptureResult(
        capture,
        judgement.findings,
        judgement.losses,
        judgement.sends,
        switches(file, own),
        timelines(own, span, file, judgement.findings, judgement.losses, lost),
        failovers(file, own),
        lost=lost_sends(file, own.sends, judgement.losses, judgement.lost),
        causes=loss_causes(file, own, judgement.losses, lost, all_ack=options.all_ack),
    )
