"""What the findings about a topic with logical queues come to, for who has not read the rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from replispec.replay.events.rocketmq.queue_seen import OF_TOPIC
from replispec.replay.report.model import ReportFinding
from replispec.replay.report.wording import counted
from replispec.runtime.primitives.invariants import Verdict

_PLACES: Final = "logical-offset-is-one-message"
_READ: Final = "acknowledged-is-read"


def in_short(group: str, findings: Sequence[ReportFinding]) -> Sequence[str]:
    """The two lines; none about another group."""
    if not group.startswith(OF_TOPIC):
        return ()
    return _messages(findings), _rules(findings)


def _messages(findings: Sequence[ReportFinding]) -> str:
    by_rule = {each.invariant: each for each in findings}
    seen = by_rule[_PLACES].evaluated if _PLACES in by_rule else 0
    due = by_rule.get(_READ)
    said = f"{counted(seen, 'time')} a message was acknowledged or read at an offset of a logical queue."
    if due is None or not due.evaluated:
        return f"{said} No consumer group was seen to go past an acknowledged message."
    missed = due.evidence_total - due.unknown if due.verdict == Verdict.VIOLATED else 0
    doubtful = f", of {due.unknown:,} that is not known" if due.unknown else ""
    got = due.evaluated - missed - due.unknown
    return (
        f"{said} {counted(due.evaluated, 'time')} a consumer group went past an acknowledged message that it "
        f"wanted: it had got {got:,} of them and missed {missed:,}{doubtful}."
    )


def _rules(findings: Sequence[ReportFinding]) -> str:
    """Which rules were kept, and the names of those that were not."""
    parts: list[str] = []
    for verdict, says in (
        (Verdict.OK, "kept"),
        (Verdict.DIVERGED, "not kept in a way that is known of Apache RocketMQ"),
        (Verdict.VIOLATED, "broken"),
        (Verdict.UNKNOWN, "in part not judged"),
    ):
        own = [each for each in findings if each.verdict == verdict and not each.idle]
        listed = ", ".join(sorted(each.invariant for each in own))
        names = f" ({listed})" if verdict != Verdict.OK else ""
        if own or verdict == Verdict.OK:
            parts.append(f"{counted(len(own), 'rule')} {says}{names}")
    idle = sum(each.idle for each in findings)
    more = f"; of {idle:,} the capture holds nothing" if idle else ""
    return f"Of {counted(len(findings), 'rule')} about such a topic: {', '.join(parts)}{more}."
