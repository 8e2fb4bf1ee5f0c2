"""`replispec check-store`: rot is told from a torn tail, with its place and what to do, and all is left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from replispec.cli.main import command_line
from replispec.runtime.storage import StorageFailed
from replispec.runtime.storage.disk_shell import DiskFiles
from replispec.wire.rocketmq.constants import ASKED_SET_FILE, CHECKPOINT_FILE, EPOCH_FILE, FLUSHED_FILE
from replispec.wire.rocketmq.store import AskedMember, AskedSyncStateSet
from tests.runtime.log.sample_logs import WrittenStore, with_epochs

FIRST, SECOND = "commitlog/00000000000000000000", "commitlog/00000000000000004096"
MESSAGES = 40


def store_in(folder: Path) -> tuple[int, list[int]]:
    """Make a store of two files of log; returns its end and where each message begins."""
    files = DiskFiles(folder)
    store = with_epochs(WrittenStore(files), MESSAGES)
    places = [each.offset for each in store.log.records(0, store.log.end)]
    end = store.log.end
    files.close()
    return end, places


def opened(folder: Path) -> int:
    """Start on a store: where its log ends then. Raises StorageFailed."""
    files = DiskFiles(folder)
    try:
        return WrittenStore(files).log.end
    finally:
        files.close()


def turn(path: Path, at: int) -> None:
    """Change one byte of a file."""
    data = bytearray(path.read_bytes())
    data[at] ^= 0x55
    path.write_bytes(data)


def checked(folder: Path, *options: str) -> Result:
    return CliRunner().invoke(command_line, ["check-store", str(folder), *options], standalone_mode=False)


def report(folder: Path) -> dict[str, object]:
    found = json.loads(checked(folder, "--json").stdout)
    assert isinstance(found, dict)
    return found


def left(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_whole_store_is_told_with_its_end_its_messages_and_its_files(tmp_path: Path) -> None:
    end, _ = store_in(tmp_path)
    result = checked(tmp_path)
    assert result.return_value == 0
    assert f"whole: a store; the log ends at {end}, it was on the disk up to {end}" in result.stdout
    assert f"{MESSAGES} messages before the end, 0 whole ones behind" in result.stdout
    for name in (FIRST, SECOND, FLUSHED_FILE, EPOCH_FILE):
        assert f"  {name}  " in result.stdout


def test_a_torn_tail_is_no_damage(tmp_path: Path) -> None:
    end, places = store_in(tmp_path)
    data = bytearray((tmp_path / SECOND).read_bytes())
    record = (tmp_path / FIRST).read_bytes()[places[0] : places[1] - 5]
    data[end - 4096 : end - 4096 + len(record)] = record
    (tmp_path / SECOND).write_bytes(data)
    before = left(tmp_path)
    result = checked(tmp_path)
    assert (result.return_value, result.stdout.split(":")[0]) == (0, "torn")
    assert left(tmp_path) == before
    assert opened(tmp_path) == end


@pytest.mark.parametrize("within", [2, 12, 90])
def test_rot_is_told_with_its_file_and_byte_and_what_lies_behind_it(tmp_path: Path, within: int) -> None:
    _, places = store_in(tmp_path)
    turn(tmp_path / FIRST, places[7] + within)
    before = left(tmp_path)
    result = checked(tmp_path)
    assert result.return_value == 1
    found = report(tmp_path)
    assert found["verdict"] == "damaged"
    if within != 12:
        assert f"{FIRST}, byte {places[7]} is damaged" in result.stdout
        assert (found["end"], found["messages"], found["behind"]) == (places[7], 7, MESSAGES - 8)
    assert "move the folder aside" in result.stdout
    assert left(tmp_path) == before
    with pytest.raises(StorageFailed, match=FIRST):
        opened(tmp_path)


def test_a_loss_that_is_accepted_ends_the_log_before_the_damage(tmp_path: Path) -> None:
    _, places = store_in(tmp_path)
    turn(tmp_path / FIRST, places[7] + 90)
    assert checked(tmp_path, "--accept-loss").return_value == 0
    assert report(tmp_path)["verdict"] == "torn"
    assert opened(tmp_path) == places[7]
    assert report(tmp_path)["verdict"] == "whole"


def test_a_short_or_missing_file_and_broken_epochs_are_damage(tmp_path: Path) -> None:
    for number, harm in enumerate(("short", "missing", "epochs")):
        folder = tmp_path / str(number)
        store_in(folder)
        match harm:
            case "short":
                (folder / FIRST).write_bytes((folder / FIRST).read_bytes()[:1000])
            case "missing":
                (folder / SECOND).unlink()
            case _:
                for path in folder.glob(f"{EPOCH_FILE}*"):
                    path.write_bytes(b"")
        assert (harm, checked(folder).return_value) == (harm, 1)
        with pytest.raises(StorageFailed):
            opened(folder)


def test_the_file_of_an_asked_set_is_told_and_a_broken_one_has_a_way_out(tmp_path: Path) -> None:
    store_in(tmp_path)
    members = [AskedMember(5, 7, 1), AskedMember(5, 7, 2)]
    (tmp_path / ASKED_SET_FILE).write_bytes(AskedSyncStateSet(members=members).encode())
    result = checked(tmp_path)
    assert result.return_value == 0
    assert "asked for the set 1 2 in epoch 5, in place of set epoch 7" in result.stdout
    turn(tmp_path / ASKED_SET_FILE, 3)
    result = checked(tmp_path)
    assert result.return_value == 1
    assert f"move {ASKED_SET_FILE} aside" in result.stdout


def test_a_store_of_java_is_told_by_what_follows_its_end(tmp_path: Path) -> None:
    """It has no mark: a damage is one where whole records follow."""
    end, places = store_in(tmp_path)
    (tmp_path / FLUSHED_FILE).unlink()
    (tmp_path / CHECKPOINT_FILE).write_bytes(bytes(4096))
    assert report(tmp_path) | {"files": [], "advice": []} == {
        "kind": "a store of Apache RocketMQ",
        "verdict": "whole",
        "end": end,
        "noted": None,
        "messages": MESSAGES,
        "behind": 0,
        "files": [],
        "advice": [],
    }
    turn(tmp_path / FIRST, places[7] + 90)
    assert report(tmp_path)["verdict"] == "damaged"
    assert "nothing to accept" in checked(tmp_path, "--accept-loss").stderr


def test_a_folder_without_a_store_is_unusable(tmp_path: Path) -> None:
    assert checked(tmp_path).return_value == 2
