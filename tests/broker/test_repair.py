"""A member that is damaged, emptied or too far behind copies its log again under the id that it has."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from replispec.cli.main import command_line
from replispec.cli.rocketmq import repair
from replispec.runtime.rocketmq.framing import Command, decode_command
from replispec.runtime.rocketmq.log import MessageStore
from replispec.runtime.rocketmq.membership.repair import May, given_up, question, standing
from replispec.runtime.sim import Disk, SimulatedFiles
from replispec.runtime.sim.disk import Content
from replispec.runtime.storage import StorageFailed, Stores
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.constants import FLUSHED_FILE, IDENTITY_FILE
from replispec.wire.rocketmq.remoting import RemotingHeader
from tests.broker.simulated_set import CONTROLLER, BrokerSet
from tests.house.tree import ROOT

PAGE = (ROOT / "docs/run-a-cluster.md").read_text()
FILE_BYTES = 4_096
SENT = [b"message %d" % number + bytes(200) for number in range(40)]


def damaged_pair(*, is_stopped: bool = True, turns: bool = True) -> tuple[BrokerSet, str]:
    """A set whose second member is stopped, and has a byte in its log that turned; or is not, yet."""
    brokers = BrokerSet()
    first, _ = brokers.pair(mapped_file_size_commit_log=FILE_BYTES)
    for body in SENT:
        assert brokers.send(first, body)[0] == 0
    brokers.world.run_for(2_000)
    if not is_stopped:
        return brokers, first
    brokers.world.kill("broker2")
    contents = disk_of(brokers).contents
    contents["store/commitlog/00000000000000000000"].data[300] ^= turns
    return brokers, first


def disk_of(brokers: BrokerSet) -> Disk:
    return brokers.world.processes["broker2"].disk


def is_refused(disk: Disk) -> bool:
    try:
        MessageStore(SimulatedFiles(disk, "store"), file_bytes=FILE_BYTES)
    except StorageFailed:
        return True
    return False


def standing_of(brokers: BrokerSet, broker_id: int) -> May:
    asked = question("broker-a")
    answer = brokers.ask(CONTROLLER, asked.header.code, body=asked.body)
    return standing(answer, "broker-a", broker_id).may


def comes_back(brokers: BrokerSet, first: str) -> None:
    """The second member starts, joins under its id, and serves everything when the first one ends."""
    brokers.start("broker2")
    brokers.until(lambda: brokers.members(1) == {1, 2})
    assert brokers.send(first, b"one more")[0] == 0
    brokers.world.kill("broker1")
    brokers.until(lambda: brokers.broker(2).serves)
    found: list[bytes] = []
    while len(found) < len(SENT) + 1:
        code, told, records = brokers.pull("10.0.1.2:10911", len(found))
        assert code == 0, told
        found += [body for body in (*SENT, b"one more") if body in records]
    assert set(found) == {*SENT, b"one more"}


def in_simulation(brokers: BrokerSet) -> Callable[..., Any]:
    """Questions of the command reach the simulated controller."""

    def ask(
        address: str, request: bytes, read: Callable[[bytes], Any], *, timeout_s: float, sealing: object = None
    ) -> Any:
        assert sealing is None
        assert (address, timeout_s) == ("127.0.0.1:9878", 3.0)
        asked = decode_command(request)
        answer = brokers.ask(CONTROLLER, asked.header.code, body=asked.body)
        answer.header.opaque = asked.header.opaque
        return read(answer.encode())

    return ask


def block(kind: str, name: str) -> str:
    found = re.search(rf"```{kind} {name}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None, name
    return found[1]


def repaired(folder: Path, disk: Disk, words: list[str], *, doubt_ms: int = 1) -> Result:
    """Run the command on the files of a simulated disk, as those of the manual's second broker."""
    text = block("properties", "broker").replace("10911", "10921").replace("broker-1", "broker-2")
    text += f"brokerClusterName=C\nalterationDoubtPeriod={doubt_ms}\n"
    (folder / "broker-2.properties").write_text(text)
    for name, content in disk.contents.items():
        path = folder / name.replace("store/", "broker-2-store/", 1)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.data)
    result = CliRunner().invoke(command_line, words, standalone_mode=False)
    disk.contents.clear()
    for path in (folder / "broker-2-store").rglob("*"):
        if path.is_file() and path.name != ".in-use":
            name = f"store/{path.relative_to(folder / 'broker-2-store')}"
            disk.contents[name] = Content(bytearray(path.read_bytes()))
    return result


def test_a_damaged_member_comes_back_as_the_manual_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    brokers, first = damaged_pair()
    disk = disk_of(brokers)
    assert is_refused(disk)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(repair, "ask", in_simulation(brokers))
    brokers.until(lambda: brokers.members(1) == {1})
    done = 0
    for line in block("sh", "repair").splitlines():
        program, *words = line.split()
        assert program == "replispec"
        if words[0] == "admin":
            identity = bytes(disk.contents[f"store/{IDENTITY_FILE}"].data)
            result = repaired(tmp_path, disk, words)
            assert result.return_value == 0, result.output
            assert "broker 1 is master" in result.output
            assert bytes(disk.contents[f"store/{IDENTITY_FILE}"].data) == identity
            kept = [name for name in disk.contents if not name.startswith("store/before-repair-1/")]
            assert kept == [f"store/{IDENTITY_FILE}"]
        else:
            assert words == ["broker", "-c", "broker-2.properties"]
            comes_back(brokers, first)
        done += 1
    assert done == 2


@pytest.mark.parametrize(("words", "left"), [(["--dry-run"], True), (["--discard"], False)])
def test_what_the_member_had_is_left_or_deleted_as_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], *, left: bool
) -> None:
    brokers, _ = damaged_pair()
    disk = disk_of(brokers)
    before = {name: bytes(content.data) for name, content in disk.contents.items()}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(repair, "ask", in_simulation(brokers))
    brokers.until(lambda: brokers.members(1) == {1})
    command = ["admin", "repair", "-c", "broker-2.properties", *words]
    assert repaired(tmp_path, disk, command).return_value == 0
    after = {name: bytes(content.data) for name, content in disk.contents.items()}
    assert after == (before if left else {f"store/{IDENTITY_FILE}": before[f"store/{IDENTITY_FILE}"]})


def test_who_is_in_the_set_waits_and_is_not_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    brokers, _ = damaged_pair(is_stopped=False)
    disk = disk_of(brokers)
    before = sorted(disk.contents)
    assert standing_of(brokers, 2) is May.SOON
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(repair, "ask", in_simulation(brokers))
    result = repaired(tmp_path, disk, ["admin", "repair", "-c", "broker-2.properties", "--wait", "0"])
    assert result.return_value == 1
    assert "still in the SyncStateSet [1 2]" in result.stderr
    assert sorted(disk.contents) == before


def test_who_may_have_been_asked_in_a_moment_ago_is_not_emptied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    brokers, _ = damaged_pair()
    disk = disk_of(brokers)
    before = sorted(disk.contents)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(repair, "ask", in_simulation(brokers))
    brokers.until(lambda: brokers.members(1) == {1})
    command = ["admin", "repair", "-c", "broker-2.properties", "--wait", "0"]
    result = repaired(tmp_path, disk, command, doubt_ms=60_000)
    assert result.return_value == 1
    assert "what the master asked before may be decided for 60 s yet" in result.stderr
    assert sorted(disk.contents) == before


def test_a_master_the_last_member_and_an_unknown_id_are_never_emptied() -> None:
    brokers, _ = damaged_pair()
    assert standing_of(brokers, 1) is May.NO
    brokers.until(lambda: brokers.members(1) == {1})
    assert (standing_of(brokers, 1), standing_of(brokers, 2)) == (May.NO, May.YES)
    assert standing_of(brokers, 7) is May.NO
    brokers.world.kill("broker1")
    brokers.world.run_for(15_000)
    assert (standing_of(brokers, 1), standing_of(brokers, 2)) == (May.NO, May.SOON)


@pytest.mark.parametrize(
    "addresses", ["10.0.0.1:1;10.0.0.2:1;127.0.0.1:9878", "10.0.0.1:1", "127.0.0.1:9878"]
)
def test_it_is_seen_whichever_controller_is_asked_first(
    addresses: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    brokers, _ = damaged_pair()
    brokers.world.run_for(30_000)
    of_leader = in_simulation(brokers)

    def ask(
        address: str, request: bytes, read: Callable[[bytes], Any], *, timeout_s: float, sealing: object = None
    ) -> Any:
        assert sealing is None
        if address == "10.0.0.2:1":
            raise OSError("nobody is there")
        if address == "127.0.0.1:9878":
            return of_leader(address, request, read, timeout_s=timeout_s, sealing=sealing)
        code = decode_command(request).header.code
        fields: dict[str, str | None] = {}
        if code == RequestCode.CONTROLLER_GET_METADATA_INFO:
            said, fields = ResponseCode.SUCCESS, {"controllerLeaderAddress": "127.0.0.1:9878", "group": "g"}
        else:
            said = ResponseCode.CONTROLLER_NOT_LEADER
        header = RemotingHeader(code=said, opaque=1, flag=1, ext_fields=fields)
        return read(Command(header).encode())

    now = iter(range(0, 1_000, 10))
    monkeypatch.setattr(repair, "ask", ask)
    monkeypatch.setattr(repair, "clock_s", lambda: next(now))
    text = f"brokerName=broker-a\ncontrollerAddr={addresses}\nstorePathRootDir=store\n"
    member = repair.StoppedMember(text, {})
    looks = [member.look(2) for _ in range(4)]
    assert [(each.may, each.waits) for each in looks] == [(False, True)] * 2 + [(True, False)] * 2


@pytest.mark.parametrize("note", ["as it is", "missing", "unreadable"])
@pytest.mark.parametrize("keeps", [True, False])
def test_interrupted_anywhere_it_is_refused_or_right_and_can_be_done_again(*, keeps: bool, note: str) -> None:
    brokers, _ = damaged_pair(turns=note == "as it is")
    disk = disk_of(brokers)
    if note == "missing":
        del disk.contents[f"store/{FLUSHED_FILE}"]
    elif note == "unreadable":
        disk.contents[f"store/{FLUSHED_FILE}"].data[-2] ^= 1
    begins = next(
        count
        for count, each in enumerate(
            given_up(SimulatedFiles(disk, "store"), "commitlog", FILE_BYTES, keeps=keeps), 1
        )
        if getattr(each, "name", "") == FLUSHED_FILE
    )
    whole = {name: bytes(content.data) for name, content in disk.contents.items()}
    files = SimulatedFiles(disk, "store")
    operations = given_up(files, "commitlog", FILE_BYTES, keeps=keeps)
    for count in range(len(operations) + 1):
        disk.contents = {name: Content(bytearray(data)) for name, data in whole.items()}
        Stores(files).carry_out(operations[:count])
        if count >= begins or note == "as it is":
            assert is_refused(disk) is (count < len(operations))
        Stores(files).carry_out(given_up(files, "commitlog", FILE_BYTES, keeps=keeps))
        assert not is_refused(disk)
        assert files.names() == [IDENTITY_FILE]


def test_no_page_advises_to_copy_a_folder_with_an_identity() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    found = [
        f"{page.name}: {line}"
        for page in pages
        for line in page.read_text().splitlines()
        if re.search(r"\b(cp -|rsync|scp )\S*.*(store|identity)", line, re.IGNORECASE)
    ]
    assert found == []
