"""A checkpoint is only ever what a watch made of it: nothing of somebody else's is removed or believed."""

from __future__ import annotations

from pathlib import Path

import pytest

from replispec.replay.watch.checkpoint import CheckpointError
from replispec.replay.watch.watcher import OWN_NAMES
from tests.replay.pcap_writer import pcap
from tests.replay.test_watch_folder import feed, talk
from tests.replay.watching import Watched


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
