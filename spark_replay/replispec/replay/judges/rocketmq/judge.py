"""From the events of one capture to findings and losses of its broker groups.

The invariants are the specification's; this module only feeds them. A finding exists for every
(file, group, invariant), ok included; losses are what breaks the survival of acknowledged sends.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from replispec.replay.events.event_tables import EventTable
from replispec.replay.events.group_names import is_named
from replispec.replay.events.rocketmq.judged_groups import JudgedGroups
from replispec.replay.events.rocketmq.stream_events import Judged, join
from replispec.replay.events.stream_event import StreamEvent
from replispec.replay.events.tables import Events
from replispec.replay.judges.findings import FindingRow, finding_of
from replispec.replay.judges.machines import of_connections, of_machines, of_pairs
from replispec.replay.judges.parts import PartFinding, PartFindings, add_up
from replispec.replay.judges.sends import LossRow, LostAt, SendsRow, losses_of, lost_at, sends_of
from replispec.replay.judges.streams import StreamJudges
from replispec.replay.machines.group_walks import GroupWalk, walked
from replispec.replay.machines.rocketmq.findings import machine_walks
from replispec.replay.machines.rocketmq.replication_walks import walk_replication
from replispec.replay.pairing.pairs import EVERYTHING, PAIRING
from replispec.runtime.primitives.invariants import Invariant
from replispec.runtime.rocketmq import rules
from replispec.wire.rocketmq.invariants import INVARIANTS
from replispec.wire.rocketmq.machines import WATCHED

SURVIVAL = "acknowledged-send-survives"
RULES: Mapping[str, Invariant] = {name: each for name, each in INVARIANTS.items() if each.group == ("group",)}
"""The rules about broker sets."""
# Events that only tell others what they mean: a group of which nothing else is known has no findings.
_CONTEXT = ("epoch_started", "epoch_unseen", "epoch_left_out")


@dataclass(slots=True)
class Judgement:
    """What is found of a capture, or of some of its groups; `lost`: which of their messages were lost."""

    file: str
    own: JudgedGroups
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
    return judge_joined(file, join(events, learners, all_ack=all_ack), learners)


def judge_joined(file: str, joined: Judged, learners: Collection[str]) -> Judgement:
    """Judge all events of a capture, which were joined; `learners` as `named_learners` has them."""
    connections = of_connections(walk_replication(joined.replication, joined.groups))
    walks = machine_walks(joined.for_machines(learners), joined.groups, learners)
    judgement = conclude(file, joined, walks, add_up(connections), joined.tables)
    judgement.findings = with_pairs(file, judgement.findings, of_pairs(joined.events))
    return judgement


def named_learners(learners: Collection[str]) -> list[str]:
    """Brokers that the user calls learners, as all others are called."""
    return [rules.canonical_address(each) for each in learners]


def stream_judges(listed: Iterable[StreamEvent]) -> StreamJudges:
    """The judges of all streams."""
    return StreamJudges(RULES, listed, rules, of_sends=SURVIVAL)


def conclude(
    file: str,
    own: JudgedGroups,
    walks: Iterable[GroupWalk],
    judged: PartFindings,
    tables: Iterable[EventTable] = (),
) -> Judgement:
    """What is found of a capture, or of some of its groups. `walks`: of machines, about these groups;
    `judged`: what rules and machines came to that were asked of parts of connections; `tables`: the events of
    streams that were not."""
    streams = stream_judges(own.listed)
    of_tables = add_up([judged, *map(streams.of, (*tables, *(each.table() for each in own.few)))])
    found = add_up([streams.listed(), of_tables, of_machines(walked(walks))])
    judgement = Judgement(file, own)
    seen = {event.group for event in own.listed if event.name not in _CONTEXT}
    seen |= {group for group, _ in of_tables}
    for group in sorted(seen | {group for group, rule in found if rule in WATCHED}):
        for rule in sorted((*RULES, *WATCHED)):
            if rule != PAIRING:
                part = found.get((group, rule), PartFinding())
                judgement.findings.append(finding_of(file, group, rule, part))
        survival = found.get((group, SURVIVAL), PartFinding())
        judgement.losses += losses_of(file, group, survival)
        if survival.messages:
            judgement.sends.append(
                sends_of(file, group, survival, begun_anew=group in own.ended, named=is_named(group))
            )
    judgement.lost = lost_in([found])
    return judgement


def lost_in(parts: Iterable[PartFindings]) -> LostAt:
    """Which messages were lost by what parts came to."""
    return lost_at(each for part in parts for (_, rule), each in part.items() if rule == SURVIVAL)


def with_pairs(file: str, findings: Iterable[FindingRow], pairs: PartFinding) -> list[FindingRow]:
    """All findings of a capture in their order: `findings` about groups; `pairs`: of requests and answers."""
    every = [*findings, finding_of(file, EVERYTHING, PAIRING, pairs)]
    return sorted(every, key=lambda row: (row.group == EVERYTHING, row.group, row.invariant))
