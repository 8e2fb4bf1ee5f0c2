"""The machines of the specification walked over what one capture shows: one finding a machine and group.

One evaluation is one event that was seen and stepped. An event without any edge from where the
machine may be, or that its edge attributes to the peer, is violated; see walks.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from replispec.replay.events.observation import Observation
from replispec.replay.events.rocketmq.groups import BrokerGroups
from replispec.replay.machines.rocketmq.broker_set_walks import walk_broker_sets
from replispec.replay.machines.rocketmq.learner_walks import walk_learners
from replispec.replay.machines.rocketmq.registration_walks import walk_registrations
from replispec.replay.machines.rocketmq.start_walks import walk_starts
from replispec.replay.machines.rocketmq.strangers import judge_members
from replispec.replay.machines.steps import MachineFinding


def machine_findings(
    rows: Sequence[Observation], groups: BrokerGroups, learners: Collection[str]
) -> Mapping[tuple[str, str], MachineFinding]:
    """Walk every machine but those of replication over the observations of one capture, in its order.

    Findings by (group, id of the machine's finding). `learners` as in stream_events.join.
    """
    found: dict[tuple[str, str], MachineFinding] = defaultdict(MachineFinding)
    walk_registrations(rows, found)
    walk_starts(rows, groups, found)
    walk_broker_sets(rows, groups, found)
    judge_members(rows, groups, found)
    walk_learners(rows, learners, found)
    return found
