"""Whoever looks at a folder waits for nothing in it that gives no bytes, or never ends."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from replispec.runtime.storage import StorageFailed
from replispec.runtime.storage.looking_shell import LookedAtFiles


@pytest.mark.parametrize("what", ["pipe", "device"])
def test_a_pipe_or_a_device_in_a_folder_is_no_file_of_it(tmp_path: Path, what: str) -> None:
    name = tmp_path / "epochFileCheckpoint"
    if what == "pipe":
        os.mkfifo(name)
    else:
        name.symlink_to("/dev/zero")
    files = LookedAtFiles(tmp_path)
    with pytest.raises(StorageFailed, match="epochFileCheckpoint: it is no file"):
        files.read(name.name)
    with pytest.raises(StorageFailed, match="epochFileCheckpoint: it is no file"):
        files.region(name.name)


def test_a_file_is_read_whole_and_what_is_not_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "topics").write_bytes(b"{}")
    files = LookedAtFiles(tmp_path)
    assert (files.read("topics"), files.read("groups")) == (b"{}", None)
    assert bytes(files.region("topics").view(0, 2)) == b"{}"
