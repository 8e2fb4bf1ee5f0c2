"""A checkpoint is only ever what a watch made of it: nothing of somebody else's is removed or believed."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from replispec.replay.watch.checkpoint import CheckpointError
from replispec.replay.watch.watcher import OWN_NAMES
from tests.replay.pcap_writer import pcap
from tests.replay.test_watch_folder import feed, talk
from tests.replay.watching import SMALL, Watched


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path / "watched")


@pytest.mark.parametrize("name", OWN_NAMES)
def test_a_checkpoint_removes_nothing_that_no_watch_wrote(watched: Watched, name: str) -> None:
    feed(watched, "a.pcap", pcap(talk(0)))
    own = watched.checkpoint / name / "mine"
    own.parent.mkdir(parents=True)
    own.write_text("kept")
    with pytest.raises(CheckpointError, match=f"{name}: no watch wrote this; name another"):
        watched.look()
    assert own.read_text() == "kept"


@pytest.mark.parametrize("inside", ["captures", "captures/of/today", "segments"])
def test_a_watch_does_not_read_what_it_writes_itself(watched: Watched, inside: str) -> None:
    watched.checkpoint.mkdir()
    folder = watched.checkpoint / inside
    folder.mkdir(parents=True)
    watched.folder.rmdir()
    watched.folder.symlink_to(folder)
    with pytest.raises(CheckpointError, match="keeps its own files in"):
        watched.look()


def harmed(content: bytes) -> list[bytes]:
    """A bit turned in the middle, the last byte cut off, zeros."""
    middle = len(content) // 2
    turned = content[:middle] + bytes([content[middle] ^ 4]) + content[middle + 1 :]
    return [turned, content[:-1], bytes(len(content))]


def test_whatever_of_a_checkpoint_is_damaged_it_is_refused_or_made_again(watched: Watched) -> None:
    watched.bounds = replace(SMALL, segment=2_000)
    whole = pcap(talk(0, count=60))
    path = feed(watched, "a.pcap", whole[: len(whole) // 2])
    watched.step()
    path.write_bytes(whole)
    saved = watched.root / "saved"
    shutil.copytree(watched.checkpoint, saved)
    kinds = {re.sub("[0-9]+", "*", each.relative_to(saved).as_posix()) for each in saved.rglob("*")}
    refused = set()
    for first in (min(saved.glob(kind)) for kind in kinds - {"captures", "segments"}):
        content = first.read_bytes()
        for harm in harmed(content) if content else []:
            shutil.rmtree(watched.checkpoint)
            shutil.copytree(saved, watched.checkpoint)
            (watched.checkpoint / first.relative_to(saved)).write_bytes(harm)
            try:
                summary = watched.end()
            except CheckpointError:
                refused.add(re.sub("[0-9-].*", "", first.name))
            else:
                assert summary.captures[0].frames_remoting == 60
    assert {"state", "a.pcap", "frames", "left", "survey", "packets"} <= refused
