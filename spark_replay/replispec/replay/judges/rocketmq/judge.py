"""From the events of one capture to findings and losses of its broker groups.

The invariants are the specification's; this module only feeds them. A finding exists for every
(file, group, invariant), ok included; losses are what breaks the survival of acknowledged sends.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from replispec.replay.events.group_names import is_named
from replispec.replay.events.rocketmq.stream_events import Judged, StreamEvent, join
from replispec.replay.events.tables import Events
from replispec.replay.judges.findings import FindingRow, finding_of
from replispec.replay.judges.machines import of_connections, of_machines, of_pairs
from replispec.replay.judges.parts import PartFinding, PartFindings, add_up
from replispec.replay.judges.sends import LossRow, LostAt, SendsRow, losses_of, lost_at, sends_of
from replispec.replay.judges.streams import StreamJudges
from replispec.replay.machines.rocketmq.findings import machine_findings
from replispec.replay.machines.rocketmq.replication_walks import walk_replication
from replispec.replay.pairing.pairs import EVERYTHING, PAIRING
from replispec.runtime.rocketmq import rules
from replispec.wire.rocketmq.invariants import INVARIANTS
from replispec.wire.rocketmq.machines import WATCHED

SURVIVAL = "acknowledged-send-survives"
# Events that only tell others what they mean: a group of which nothing else is known has no findings.
_CONTEXT = ("epoch_started", "epoch_unseen", "epoch_left_out")


@dataclass(slots=True)
class Judgement:
    """The result of one capture; `lost`: which of the messages that were joined were lost."""

    file: str
    joined: Judged
    findings: list[FindingRow] = field(default_factory=list)
    losses: list[LossRow] = field(default_factory=list)
    sends: list[SendsRow] = field(default_factory=list)
    lost: LostAt = field(default_factory=LostAt)


def judge_capture(
    file: str, events: Events, learners: Collection[str] = (), *, all_ack: bool = False
) -> Judgement:
    """Judge the events of one capture by every invariant and machine of the specification.

    `learners` and `all_ack` as in stream_events.join.
    """
    learners = named_learners(learners)
    joined = join(events, learners, all_ack=all_ack)
    walked = of_connections(walk_replication(joined.replication, joined.groups))
    return conclude(file, joined, [], walked, of_pairs(joined.events), learners)


def named_learners(learners: Collection[str]) -> list[str]:
    """Brokers that the user calls learners, as all others are called."""
    return [rules.canonical_address(each) for each in learners]


def stream_judges(listed: Iterable[StreamEvent]) -> StreamJudges:
    """The judges of all streams."""
    return StreamJudges(INVARIANTS, listed, rules, of_sends=SURVIVAL)


def conclude(
    file: str,
    joined: Judged,
    judged: Iterable[PartFindings],
    walked: Iterable[PartFindings],
    pairs: PartFinding,
    learners: Collection[str],
) -> Judgement:
    """The result of one capture: of all that was joined, and of what parts come to beside it.

    `judged` by invariants, `walked` by the machines of replication; `pairs`: of requests and answers.
    """
    streams = stream_judges(joined.listed)
    of_tables = add_up([*judged, *map(streams.of, joined.tables)])
    machines = of_machines(machine_findings(joined.for_machines(learners), joined.groups, learners))
    found = add_up([streams.listed(), of_tables, machines, *walked])
    judgement = Judgement(file, joined)
    seen = {event.group for event in joined.listed if event.name not in _CONTEXT}
    seen |= {group for group, _ in of_tables}
    ended = joined.groups.ended()
    for group in sorted(seen | {group for group, rule in found if rule in WATCHED}):
        for rule in (*INVARIANTS, *WATCHED):
            if rule != PAIRING:
                part = found.get((group, rule), PartFinding())
                judgement.findings.append(finding_of(file, group, rule, part))
        survival = found.get((group, SURVIVAL), PartFinding())
        judgement.losses += losses_of(file, group, survival)
        if survival.messages:
            judgement.sends.append(
                sends_of(file, group, survival, begun_anew=group in ended, named=is_named(group))
            )
    judgement.lost = lost_at(part for (_, rule), part in found.items() if rule == SURVIVAL)
    judgement.findings.append(finding_of(file, EVERYTHING, PAIRING, pairs))
    judgement.findings.sort(key=lambda row: (row.group == EVERYTHING, row.group, row.invariant))
    return judgement
