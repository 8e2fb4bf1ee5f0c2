"""What each edge of the machines of queues of either form has to be, whichever are seen to.

Whoever asks a broker about such a queue is answered, once: an edge without its answer leaves somebody waiting
until he gives up. And what a queue is stands in the log: an edge that records nothing leaves it as it was,
since whatever else it says is forgotten with the request.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from replispec.wire.rocketmq.machines import logical_queue_segment as segment
from replispec.wire.rocketmq.machines import logical_queue_topic as topic
from replispec.wire.rocketmq.machines import static_topic_queue as static

# Of these nobody waits to hear.
UNASKED = {segment.Aged, segment.ExpiryKept, static.Recorded, static.Emptied}
BESIDE = {"register", "note_hint"}
"""What is done besides, and gives nobody an answer."""
MACHINES: Sequence[Any] = segment.MACHINE, topic.MACHINE, static.MACHINE
EDGES = [
    pytest.param(edge, id=f"{machine.name}: {state.name} on {kind.__name__}, {number}")
    for machine in MACHINES
    for (state, kind), edges in machine.transitions.items()
    if kind not in UNASKED
    for number, edge in enumerate(edges)
]


@pytest.mark.parametrize("edge", EDGES)
def test_each_edge_answers_or_records_or_does_what_is_asked(edge: Any) -> None:
    assert len([each for each in edge.do if each not in BESIDE]) == 1


RECORDING = {"record_segment", "record_topic", "record_mapping", "record_dropped"}
LEAVING = [
    pytest.param(state, edge, id=f"{machine.name}: {state.name} on {kind.__name__}, {number}")
    for machine in MACHINES
    for (state, kind), edges in machine.transitions.items()
    # What the log says of a static queue is the event itself.
    if kind is not static.Recorded
    for number, edge in enumerate(edges)
    if not RECORDING & {*edge.do}
]


@pytest.mark.parametrize(("state", "edge"), LEAVING)
def test_an_edge_that_records_nothing_leaves_a_queue_as_it_was(state: Any, edge: Any) -> None:
    assert (edge.to, edge.assign) == (state, {})
