"""How captures are judged in which members of a group speak."""

from __future__ import annotations

from replispec.replay.engines.family import JudgedFamily
from replispec.replay.engines.results import CaptureResult, Options
from replispec.replay.events.tables import Events
from replispec.replay.judges.raft.judge import judge_members
from replispec.replay.report.summary import CaptureRow


def _judge(capture: CaptureRow, events: Events, options: Options) -> CaptureResult:  # noqa: ARG001 (nothing is asked)
    """Judge what members said in one capture."""
    return CaptureResult(capture, judge_members(capture.file, events))


FAMILY = JudgedFamily(_judge)
