"""Whatever was wrong with a folder, a watch that was killed at any write ends as one that was not."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from replispec.replay.engines.results import SUMMARY_NAME
from tests.replay.pcap_writer import pcap
from tests.replay.test_watch_folder import feed, talk
from tests.replay.watching import LOCAL, SMALL, Watched

Step = Callable[[Watched], object]
PARTS = [pcap(talk(3 * at, client=40_000 + at)) for at in range(6)]


class KilledError(BaseException):
    """What no handler of ours catches: the process is gone."""


def rewritten(watched: Watched, name: str, content: bytes, time: int) -> None:
    """A file that is written over in its place; its time tells it, whatever the clock says."""
    feed(watched, name, content)
    os.utime(watched.folder / name, ns=(time, time))


def grown(watched: Watched, name: str, content: bytes) -> None:
    with (watched.folder / name).open("ab") as file:
        file.write(content)


def moved(watched: Watched, name: str, to: str) -> Path:
    return (watched.folder / name).rename(watched.folder / to)


# What happens to the folder, one thing after each look.
STORIES: dict[str, tuple[Step, ...]] = {
    "grows, is renamed, its name used again, comes round": (
        lambda it: feed(it, "a", PARTS[0][:-500]),
        lambda it: grown(it, "a", PARTS[0][-500:]),
        lambda it: (moved(it, "a", "a.1"), feed(it, "a", PARTS[1])),
        lambda it: (moved(it, "a.1", "a.2"), moved(it, "a", "a.1"), feed(it, "a", PARTS[2])),
        lambda it: rewritten(it, "a.1", PARTS[3], 1),
        lambda it: (it.folder / "a.2").unlink(),
    ),
    "vanishes, overlaps, comes too late, is junk": (
        lambda it: feed(it, "b", PARTS[1]),
        lambda it: (feed(it, "a", PARTS[0]), feed(it, "copy", PARTS[1]), feed(it, "junk", b"no capture")),
        lambda it: (feed(it, "c", PARTS[2]), feed(it, "d.gz", gzip.compress(PARTS[3]))),
        lambda it: (it.folder / "c").unlink(),
        lambda it: feed(it, "e", PARTS[4]),
    ),
    "is replaced, is truncated, grows when it was done": (
        lambda it: feed(it, "a", PARTS[0]),
        lambda it: (feed(it, "new", PARTS[1]), moved(it, "new", "a")),
        lambda it: feed(it, "b", PARTS[2]),
        lambda it: rewritten(it, "b", PARTS[2][:100], 1),
        lambda it: (feed(it, "c", PARTS[3]), feed(it, "d", PARTS[4][:-300])),
        lambda it: grown(it, "c", PARTS[5]),
    ),
}


@contextmanager
def killed_at(monkeypatch: pytest.MonkeyPatch, writes: int) -> Iterator[None]:
    """The process ends at the write after so many."""
    left = [writes]

    def flushed(_descriptor: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", flushed)
        yield


@pytest.mark.parametrize("story", STORIES)
def test_killed_at_any_write_a_watch_of_a_bad_folder_ends_as_one_that_was_not(
    story: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounds = replace(SMALL, segment=3_000)
    whole, killed = Watched(tmp_path / "whole", bounds), Watched(tmp_path / "killed", bounds)
    with whole.opened() as watcher:
        for step in STORIES[story]:
            step(whole)
            watcher.step()
        watcher.end(LOCAL.value)
    kills = 0
    for step in STORIES[story]:
        step(killed)
        for writes in range(1_000):
            try:
                with killed_at(monkeypatch, writes):
                    killed.step()
            except KilledError:
                kills += 1
            else:
                break
    killed.end()
    assert kills > 20
    summaries = [json.loads((each.out / SUMMARY_NAME).read_text()) for each in (whole, killed)]
    assert summaries[0] == summaries[1]
    assert whole.shown() == killed.shown()
