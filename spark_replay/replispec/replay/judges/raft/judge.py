"""From what members of groups said in one capture to findings about each group, by the rules of agreement."""

from __future__ import annotations

from replispec.replay.events.capture_events import CaptureEvents
from replispec.replay.events.observation import ObservationKind
from replispec.replay.events.raft.streams import agreement_events
from replispec.replay.events.tables import Events
from replispec.replay.judges.findings import FindingRow, finding_of
from replispec.replay.judges.parts import PartFinding
from replispec.replay.judges.streams import StreamJudges
from replispec.runtime.raft import rules
from replispec.wire.raft.invariants import INVARIANTS


def judge_members(file: str, events: Events) -> list[FindingRow]:
    """The verdict of every rule on every group whose members speak in a capture."""
    if not events[ObservationKind.MEMBER].num_rows:
        return []
    rows = CaptureEvents({ObservationKind.MEMBER: events[ObservationKind.MEMBER]}).few
    listed = list(agreement_events(rows))
    found = StreamJudges(INVARIANTS, listed, rules, of_sends="").listed()
    groups = sorted({event.group for event in listed})
    return [
        finding_of(file, group, rule, found.get((group, rule), PartFinding()))
        for group in groups
        for rule in sorted(INVARIANTS)
    ]
