"""Connections that nobody captured: a master that starts again, with clients beside each other and logs that
fall, has lost no more when any one of its connections is missing.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from replispec.replay.events.observation import Observation
from replispec.replay.events.tables import to_tables
from replispec.replay.judges.rocketmq.judge import judge_capture
from tests.replay.expectations import LOG_HOLDS
from tests.replay.test_mess import FULL_SEEDS, SEEDS
from tests.replay.test_stream_events import FIRST, fact, named
from tests.replay.test_within_an_epoch import beat, registered, sent

RUNS_MAX, SIZES = 3, (60, 100, 140)
Loss = tuple[int, int, int]
"""Where the first and the last lost message lie, and how many there are."""


@dataclass
class Story:
    """Runs of one master in one epoch: what its connections carry, and which places were cut off.

    Messages of one size begin at the same places in each run; so connections fit into several of them.
    """

    chance: random.Random
    rows: list[Observation] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)
    log: list[int] = field(default_factory=list)
    end: int = 0
    clients: int = 0
    order: int = 20

    def told(self) -> Story:
        """Tell it whole."""
        runs, alike = self.chance.randrange(1, RUNS_MAX + 1), self.chance.random() < 0.6
        for run in range(runs):
            self._start(run)
            self._serve(run, SIZES[1:2] if alike else SIZES)
            if run + 1 < runs and self.chance.random() < 0.75:
                self._fall()
        return self

    def _start(self, run: int) -> None:
        self.rows += registered(self.order, f"r{run}", run + 1)
        self.order += 1
        for _ in range(self.chance.randrange(3)):
            self._beat(run)
        told = replace(fact(self.order, 1, "1", FIRST), connection=f"r{run}", direction=1)
        self.rows.append(told)
        self.order += 1

    def _serve(self, run: int, sizes: Sequence[int]) -> None:
        clients = [self._client()]
        for _ in range(self.chance.randrange(1, 6)):
            if self.chance.random() < 0.35:
                clients = [*clients[: self.chance.randrange(2)], self._client()]
            for _ in range(self.chance.randrange(1, 9)):
                client, name = self.chance.choice(clients), f"message {self.order}"
                self.rows += sent(client, self.end, first=self.order, text=name)
                self.log.append(self.end)
                self.order += 1
                self.end += self.chance.choice(sizes)
            if self.chance.random() < 0.5:
                self._beat(run)

    def _client(self) -> str:
        self.clients += 1
        return f"client {self.clients}"

    def _beat(self, run: int) -> None:
        self.rows.append(beat(self.order, self.end, f"r{run}"))
        self.order += 1

    def _fall(self) -> None:
        kept = len(self.log) - self.chance.randrange(min(len(self.log), 14) + 1)
        if kept < len(self.log):
            self.end = self.log[kept]
            self.lost += self.log[kept:]
            del self.log[kept:]


def found(rows: Sequence[Observation]) -> tuple[list[Loss], bool]:
    """What is lost, and whether the log is said to have fallen."""
    judged = judge_capture("x.pcap", to_tables([*named(FIRST), fact(10, 1, "1", FIRST), *rows]))
    fell = any(each.invariant == LOG_HOLDS and each.verdict.value == "violated" for each in judged.findings)
    return [(each.from_offset, each.to_offset, each.acknowledged) for each in judged.losses], fell


def is_true(losses: Sequence[Loss], lost: Sequence[int]) -> bool:
    return all(
        lost and min(lost) <= first <= last <= max(lost) and count <= len(lost)
        for first, last, count in losses
    )


# Where exclusion alone was believed, 3 of the first 30 stories had more losses than are true (0, 5, 24).
@pytest.mark.parametrize("seed", range(400 if SEEDS >= FULL_SEEDS else 12))
def test_a_master_has_lost_no_more_whichever_of_its_connections_is_missing(seed: int) -> None:
    story = Story(random.Random(seed)).told()
    for missing in (None, *sorted({row.connection for row in story.rows})):
        losses, fell = found([row for row in story.rows if row.connection != missing])
        assert is_true(losses, story.lost), missing
        assert story.lost or not fell, missing


def test_stories_of_restarts_tell_most_of_what_is_lost() -> None:
    """Else the promise above would be kept by saying nothing."""
    told = lost = 0
    for seed in range(12):
        story = Story(random.Random(seed)).told()
        told += sum(count for *_, count in found(story.rows)[0])
        lost += len(story.lost)
    assert 0 < 3 * lost < 4 * told
