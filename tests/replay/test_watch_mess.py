"""What only the whole of a capture tells of a part of it is told of parts that were decoded before."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from replispec.replay.watch.watcher import Bounds
from tests.replay import mess
from tests.replay.defects import DEFECTS, damaged, sound
from tests.replay.watching import CAPTURES, Watched, cut

CAPTURE = CAPTURES / "power_cut.pcap"


def watched_like_replayed(root: Path, header: bytes, packets: list[mess.Seen], files: int) -> None:
    """Feed a capture in some files, each decoded and judged before the next one is there."""
    root.mkdir(exist_ok=True)
    whole = root / CAPTURE.name
    whole.write_bytes(mess.written(header, packets))
    watched = Watched(root / "watched", Bounds(segment=50_000))
    sources = cut(whole, root / "sources", files, random.Random(1))
    for source in sources:
        (watched.folder / source.name).write_bytes(source.read_bytes())
        watched.step()
    watched.end()
    watched.assert_replayed(sources)


@pytest.mark.parametrize("name", DEFECTS)
def test_whatever_happened_to_packets_a_watch_tells_what_a_replay_tells(tmp_path: Path, name: str) -> None:
    header, packets = mess.read(CAPTURE.read_bytes())
    rng = random.Random(name)
    made = sorted(DEFECTS[name].make(sound(packets), rng), key=lambda each: each.time_ns)
    watched_like_replayed(tmp_path, header, made, files=2)


def test_senders_that_are_known_only_later_are_judged_as_such_from_the_beginning(tmp_path: Path) -> None:
    """At first most checksums are wrong, as of a sender that does not fill them in; later most are right."""
    header, packets = mess.read(CAPTURE.read_bytes())
    right = sound(packets)
    early, rng = len(right) // 8, random.Random(1)
    bad = right[:early]
    for _ in range(80):
        bad = damaged(bad, rng)
    watched_like_replayed(tmp_path, header, [*bad, *right[early:]], files=4)
