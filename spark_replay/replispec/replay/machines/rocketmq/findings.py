"""The machines of the specification walked over what one capture shows: one finding a machine and group.

One evaluation is one event that was seen and stepped. An event without any edge from where the
machine may be, or that its edge attributes to the peer, is violated; see walks.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

from replispec.replay.events.rocketmq.stream_events import Judged
from replispec.replay.machines.rocketmq.broker_set_walks import walk_broker_sets
from replispec.replay.machines.rocketmq.learner_walks import walk_learners
from replispec.replay.machines.rocketmq.registration_walks import walk_registrations
from replispec.replay.machines.rocketmq.start_walks import walk_starts
from replispec.replay.machines.steps import MachineFinding


def machine_findings(joined: Judged, learners: Collection[str]) -> Mapping[tuple[str, str], MachineFinding]:
    """Walk every machine but those of replication over what is known of one capture, in its order.

    Findings by (group, id of the machine's finding). `learners` as in stream_events.join.
    """
    rows, groups = joined.few, joined.groups
    found: dict[tuple[str, str], MachineFinding] = defaultdict(MachineFinding)
    walk_registrations(rows, found)
    walk_starts(rows, groups, found)
    walk_broker_sets(rows, groups, found)
    if learners or any(row.async_learner for row in rows):
        walk_learners(joined.rows, learners, found)
    return found
