"""Lives of the machines as they are specified, to be read: what each edge means when it is met.

`REWRITE=1` writes them again after a change of the specification; then read the diff: it is what the change
does.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.scenarios.walks import BROKER_SET, HA_MASTER, HA_REPLICA, Life, tell

FOLDER = Path(__file__).parent / "machines"
LIVES = {"broker_set": BROKER_SET, "ha_master": HA_MASTER, "ha_replica": HA_REPLICA}


@pytest.mark.parametrize("name", LIVES)
def test_a_machine_lives_as_its_transcript_says(name: str) -> None:
    text = "\n".join(tell(LIVES[name]).lines) + "\n"
    path = FOLDER / f"{name}.txt"
    if os.environ.get("REWRITE"):
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("life", LIVES.values(), ids=LIVES)
def test_the_transcripts_take_every_edge(life: Life) -> None:
    taken = {id(edge) for edge in tell(life).edges}
    missed = [
        f"{state.name} on {kind.__name__}: edge {number}"
        for (state, kind), edges in life.machine.transitions.items()
        for number, edge in enumerate(edges)
        if id(edge) not in taken
    ]
    assert missed == []
