"""`replispec admin found --from-folder`, and `replispec controller import`: dry run first, all or nothing."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from replispec.cli.main import command_line
from tests.controller.apache_folders_read import DLEDGER, JRAFT

JRAFTS = [
    "4 broker sets, as of entry 138 of term 1 in the log of jRaft",
    "  a of c1: master 1 of masterEpoch 3, in sync 1, 2, 3 (epoch 7)",
    "    1  127.0.0.1:10911",
    "    2  127.0.0.1:20911",
    "    3  127.0.0.1:30911",
    "    4  127.0.0.1:40911",
    "  b of c1: master 2 of masterEpoch 2, in sync 2 (epoch 3)",
    "    1  127.0.0.1:10911",
    "    2  127.0.0.1:29911",
    "  d of c1: master 1 of masterEpoch 1, in sync 1 (epoch 1)",
    "    1  127.0.0.1:10911",
    "  f of c1: no master of masterEpoch 0, in sync nobody (epoch 0)",
    "    1  127.0.0.1:10911",
]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the file of a group's first member, and both folders of Java's controllers."""
    monkeypatch.chdir(tmp_path)
    Path("n1.properties").write_text(
        "controllerDLegerGroup=group-a\ncontrollerDLegerPeers=n1-127.0.0.1:9871\n"
        "controllerDLegerSelfId=n1\ncontrollerStorePath=n1-store\n"
    )
    shutil.copytree(DLEDGER, "dledger")
    shutil.copytree(JRAFT, "jraft")
    return tmp_path


def asked(*more: str, words: Sequence[str] = ("admin", "found")) -> Result:
    """What the command says; its exit code is that of `main`."""
    arguments = [*words, "-c", "n1.properties", *more]
    return CliRunner().invoke(command_line, arguments, standalone_mode=False)


def refused(*more: str) -> str:
    """Why it founds nothing: the store of the group is as it was."""
    result = asked(*more)
    assert result.return_value == 1, result.output
    assert "Nothing was changed" in result.stderr
    assert "there is no log of a controller" in asked().stderr
    return result.stderr


def files(folder: Path) -> dict[Path, bytes]:
    return {each: each.read_bytes() for each in sorted(folder.rglob("*")) if each.is_file()}


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("words", [("admin", "found"), ("controller", "import")])
def test_a_dry_run_says_what_would_be_on_record_and_writes_nothing(words: Sequence[str]) -> None:
    before = files(Path("jraft"))
    for more, says in ((["--dry-run"], "would be"), ([], "is")):
        result = asked("--from-folder", "jraft", *more, words=words)
        assert result.return_value == 0
        end = f"n1-store {says} the store of the only member of the group group-a/n1"
        assert result.stdout.splitlines() == [*JRAFTS, end]
        assert "brokers must stand still" in result.stderr
    again = asked("--from-folder", "jraft")
    assert (again.return_value, "there is a log already" in again.stderr) == (1, True)
    assert files(Path("jraft")) == before


@pytest.mark.usefixtures("here")
def test_what_may_not_be_committed_is_decided_by_people() -> None:
    Path("dledger/dledger-n1/checkpoint").write_text("committedIndex=30\nendIndex=34\n")
    dry = asked("--from-folder", "dledger", "--dry-run")
    first = "4 broker sets, as of entry 30 of term 0 in the log of DLedger's n1"
    assert dry.return_value == 0
    assert dry.stdout.splitlines()[0] == f"{first}, which ends with entry 34 of term 0"
    assert "left out: entry 31 of term 0: ELECT_MASTER of b" in dry.stderr
    says = (
        "whether this is committed: entry 31 of term 0: ELECT_MASTER of b, and 3 more. Say --beyond take or"
    )
    assert says in refused("--from-folder", "dledger")
    taken = asked("--from-folder", "dledger", "--beyond", "take", "--dry-run")
    assert "no master of masterEpoch 5, in sync 2 (epoch 3)" in taken.stdout
    left = asked("--from-folder", "dledger", "--beyond", "leave")
    assert (left.return_value, "master 1 of masterEpoch 1, in sync 1, 2 (epoch 2)" in left.stdout) == (
        0,
        True,
    )


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", ["dledger/dledger-n1/data/00000000000000000000", "jraft/log/000004.log"])
def test_a_folder_that_a_process_has_open_is_refused(name: str) -> None:
    with Path(name).open("rb"):
        said = refused("--from-folder", name.partition("/")[0])
    assert "has it open: stop its controller, in order" in said


@pytest.mark.usefixtures("here")
def test_what_is_no_folder_of_one_controller_is_refused_by_name() -> None:
    Path("empty").mkdir()
    assert "neither dledger-ID, as DLedger, nor log or snapshot" in refused("--from-folder", "empty")
    assert "neither dledger-ID" in refused("--from-folder", "nowhere")
    shutil.copytree("dledger/dledger-n1", "dledger/dledger-n2")
    assert "it has dledger-n1, dledger-n2: name the one" in refused("--from-folder", "dledger")
    assert asked("--from-folder", "dledger/dledger-n2", "--dry-run").return_value == 0
    shutil.rmtree("dledger/dledger-n2/data")
    Path("dledger/dledger-n2/data").mkdir()
    assert "DLedger's log is not there" in refused("--from-folder", "dledger/dledger-n2")


@pytest.mark.usefixtures("here")
def test_the_folder_of_the_others_is_not_the_store_of_ours() -> None:
    before = files(Path("dledger"))
    result = asked("--from-folder", "dledger/../dledger", "--set", "controllerStorePath=dledger")
    assert (result.return_value, "name another controllerStorePath" in result.stderr) == (1, True)
    assert files(Path("dledger")) == before


@pytest.mark.usefixtures("here")
def test_without_the_library_a_snapshot_alone_is_read_and_a_log_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "rocksdict", None)
    assert "RocksDB is not read without rocksdict: pip install" in refused("--from-folder", "jraft")
    dry = asked("--from-folder", "jraft", "--dry-run")
    assert dry.stdout.startswith("3 broker sets, as of entry 77 of term 1 in the log of jRaft")
    shutil.rmtree("jraft/snapshot")
    assert "there is no snapshot, and its log cannot be read" in refused("--from-folder", "jraft")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("cut", [1, 7, 5_000])
def test_a_log_of_jrafts_whose_end_is_torn_is_refused(cut: int) -> None:
    log = Path("jraft/log/000004.log")
    log.write_bytes(log.read_bytes()[:-cut])
    assert "its RocksDB: " in refused("--from-folder", "jraft")


@pytest.mark.usefixtures("here")
def test_a_log_of_jrafts_that_is_damaged_or_in_segments_is_refused() -> None:
    log = Path("jraft/log/MANIFEST-000005")
    log.write_bytes(log.read_bytes()[:40])
    assert "its RocksDB: " in refused("--from-folder", "jraft")
    shutil.rmtree("jraft/log")
    Path("jraft/log/segments").mkdir(parents=True)
    assert "segments of jRaft's are not read" in refused("--from-folder", "jraft")


@pytest.mark.usefixtures("here")
def test_a_log_of_jrafts_that_lost_its_newest_part_is_never_taken_for_all_of_it() -> None:
    """RocksDB begins anew where its write-ahead log is gone, and reads nothing where it is empty."""
    log = Path("jraft/log/000004.log")
    log.write_bytes(b"")
    says = "whether this is committed: whatever its log has behind entry 77: its write-ahead log is empty"
    assert says in refused("--from-folder", "jraft")
    left = asked("--from-folder", "jraft", "--beyond", "leave", "--dry-run")
    assert (left.return_value, "left out: whatever its log has behind entry 77" in left.stderr) == (0, True)
    log.unlink()
    assert "its RocksDB: no write-ahead log, *.log, is in log" in refused("--from-folder", "jraft")
    shutil.rmtree("jraft/snapshot")
    log.write_bytes(b"")
    assert "there is no snapshot, and no entry in its log" in refused("--from-folder", "jraft")
