"""The machines of the specification walked over what one capture shows: one finding a machine and group.

One evaluation is one event that was seen and stepped. An event without any edge from where the
machine may be, or that its edge attributes to the peer, is violated; see walks.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from replispec.replay.events.observation import Observation
from replispec.replay.events.rocketmq.groups import BrokerGroups
from replispec.replay.machines.group_walks import GroupWalk
from replispec.replay.machines.rocketmq.broker_set_walks import walks_of_broker_sets
from replispec.replay.machines.rocketmq.learner_walks import walks_of_learners
from replispec.replay.machines.rocketmq.registration_walks import walks_of_registrations
from replispec.replay.machines.rocketmq.start_walks import walks_of_starts
from replispec.replay.machines.rocketmq.strangers import members_to_judge


def machine_walks(
    rows: Sequence[Observation], groups: BrokerGroups, learners: Collection[str]
) -> Iterator[GroupWalk]:
    """Every machine but those of replication over the observations of one capture, which are in its order.

    `learners` as in stream_events.join.
    """
    yield from walks_of_registrations(rows)
    yield from walks_of_starts(rows, groups)
    yield from walks_of_broker_sets(rows, groups)
    yield from members_to_judge(rows, groups)
    yield from walks_of_learners(rows, learners)
