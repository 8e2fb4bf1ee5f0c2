"""Whoever asks a broker about a queue of either form is answered, once: by each edge of the machines.

An edge without its answer leaves somebody waiting until he gives up, and few of them are ever seen to.
"""

from __future__ import annotations

from typing import Any

import pytest

from replispec.wire.rocketmq.machines import logical_queue_segment as segment
from replispec.wire.rocketmq.machines import logical_queue_topic as topic
from replispec.wire.rocketmq.machines import static_topic_queue as static

# Of these nobody waits to hear.
UNASKED = {segment.Aged, segment.ExpiryKept, static.Recorded, static.Emptied}
BESIDE = {"register", "note_hint"}
"""What is done besides, and gives nobody an answer."""
EDGES = [
    pytest.param(edge, id=f"{machine.name}: {state.name} on {kind.__name__}, {number}")
    for machine in (segment.MACHINE, topic.MACHINE, static.MACHINE)
    for (state, kind), edges in machine.transitions.items()
    if kind not in UNASKED
    for number, edge in enumerate(edges)
]


@pytest.mark.parametrize("edge", EDGES)
def test_each_edge_answers_or_records_or_does_what_is_asked(edge: Any) -> None:
    assert len([each for each in edge.do if each not in BESIDE]) == 1
