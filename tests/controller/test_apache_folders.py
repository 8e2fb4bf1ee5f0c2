"""Folders of Apache RocketMQ's controllers: a group of ours begins with what is committed in them, or says
why not.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replispec.controller.rocketmq.apache import FolderUnread, KeptRecord
from replispec.controller.rocketmq.apache.dledger import DledgerFiles, read_dledger
from replispec.controller.rocketmq.apache.jraft import JraftFiles, read_jraft
from replispec.controller.rocketmq.founding import FirstState, founded
from replispec.event.v1.event_pb2 import JraftEntry, JraftSnapshotMeta
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.primitives.hessian import read_hessian
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.sim import Disk, Rng, SimulatedStorage
from replispec.runtime.storage import Stores
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.constants import JRAFT_SNAPSHOT_META
from replispec.wire.rocketmq.controller import (
    ApplyBrokerIdRequest,
    BrokerHeartbeatRequest,
    CleanBrokerDataRequest,
    ElectMasterRequest,
    RegisterBrokerToControllerRequest,
)
from replispec.wire.rocketmq.controller_store import (
    DledgerEntry,
    HeldSets,
    HeldState,
    JraftEntryHead,
    JraftFile,
)
from replispec.wire.rocketmq.remoting import RemotingHeader
from tests.controller.apache_folders_read import (
    SNAPSHOT,
    SNAPSHOT_INDEX,
    dledger,
    entries,
    jraft,
    shown,
    told,
)
from tests.controller.test_founding import GROUP, NAME
from tests.sim.controller_script import question
from tests.sim.controllers import Controllers

READ: dict[str, Callable[[], KeptRecord]] = {
    "dledger": lambda: read_dledger(dledger(), takes_all=False),
    "jraft": lambda: read_jraft(jraft(), unclean=False, takes_all=False),
}
KINDS = pytest.mark.parametrize("kind", READ)
LAST = 34
# Asked for after the controller told of the others, so that its answer does not have it.
UNTOLD = "f"


def starts(entry: int) -> int:
    """Where an entry of DLedger's log begins."""
    data, at = dledger().data[0], 0
    for _ in range(entry):
        _, at = DledgerEntry.decode_at(data, at, len(data))
    return at


def committed(index: int) -> bytes:
    """Notes that say so much is committed."""
    return f"committedIndex={index}\nendIndex={LAST}\n".encode()


def whole() -> bytes:
    return bytes(dledger().data[0])


@KINDS
def test_what_is_read_is_what_the_controller_told_before_it_ended(kind: str) -> None:
    kept = READ[kind]()
    found = {each.broker_name: each for each in kept.sets}
    assert {name: shown(each) for name, each in found.items() if name != UNTOLD} == told(kind)
    assert found["b"].check_codes[2] == "127.0.0.1:20911;17"
    assert (found[UNTOLD].master_epoch, found[UNTOLD].next_broker_id) == (0, 2)
    assert (kept.beyond, kept.notes) == ([], [])


@KINDS
def test_a_group_that_is_founded_with_it_takes_brokers_for_who_they_are(kind: str) -> None:
    first = FirstState(READ[kind]().sets, index=1, term=1)
    group = Controllers(37, size=1, is_short=False).start()
    group.world.kill("controller-1")
    process = group.world.processes["controller-1"]
    process.disk = Disk(Rng(3))
    Stores(journal=SimulatedStorage(process.disk).journal(NAME)).carry_out([founded(GROUP, first)])
    group.world.start("controller-1")
    leader = group.leader()
    group.world.run_for(500)
    record = group.record("controller-1")
    assert set(record) == {"a", "b", "d", UNTOLD}

    def applies(broker: int, code: str) -> int:
        header = ApplyBrokerIdRequest("c1", "a", broker, code)
        return group.codes(leader, question(RequestCode.CONTROLLER_APPLY_BROKER_ID, header))[0]

    # Whoever lost the answer asks again under its code; nobody else gets the id.
    assert applies(2, "127.0.0.1:20911;17") == ResponseCode.SUCCESS
    assert applies(2, "127.0.0.9:20911;18") == ResponseCode.CONTROLLER_BROKER_ID_INVALID
    assert applies(5, "127.0.0.1:50911;18") == ResponseCode.SUCCESS
    # The replica is registered, lives, and is elected in the next masterEpoch.
    for code, header in (
        (
            RequestCode.CONTROLLER_REGISTER_BROKER,
            RegisterBrokerToControllerRequest("c1", "a", 2, "127.0.0.1:20911"),
        ),
        (
            RequestCode.BROKER_HEARTBEAT,
            BrokerHeartbeatRequest("c1", "127.0.0.1:20911", "a", 2, 3, 100, heartbeat_timeout_mills=60_000),
        ),
        (
            RequestCode.CONTROLLER_ELECT_MASTER,
            ElectMasterRequest("c1", "a", broker_id=2, designate_elect=False),
        ),
    ):
        assert group.codes(leader, question(code, header)) == [ResponseCode.SUCCESS]
    found: Any = group.record("controller-1")["a"]
    assert (found[1].master, found[1].master_epoch, found[1].sync_state_set) == (2, 4, {2})


def test_jrafts_log_alone_makes_what_its_snapshot_and_the_log_behind_it_make() -> None:
    log, both = entries(), READ["jraft"]()
    assert log[0][0] == 1
    alone = read_jraft(jraft(log, snapshot=False), unclean=False, takes_all=False)
    assert (alone.sets, alone.index, alone.term) == (both.sets, both.index, both.term)
    # And what follows the snapshot matters.
    assert both.sets != read_jraft(jraft(log[:SNAPSHOT_INDEX]), unclean=False, takes_all=False).sets


# What is committed


def test_entries_that_may_not_be_committed_are_named_and_left_out() -> None:
    kept = read_dledger(dledger(checkpoint=committed(30)), takes_all=False)
    assert (kept.index, len(kept.beyond)) == (30, 4)
    assert kept.beyond[0] == "entry 31 of term 0: ELECT_MASTER of b"
    sets = {each.broker_name: each for each in kept.sets}
    assert (sets["b"].master, sets["b"].master_epoch) == (1, 1)
    everything = read_dledger(dledger(checkpoint=committed(30)), takes_all=True)
    assert (everything.sets, everything.beyond) == (READ["dledger"]().sets, [])


@pytest.mark.parametrize("noted", [b"", b"committedIndex=", b"\xff\\u12"])
def test_without_notes_nothing_is_known_to_be_committed(noted: bytes) -> None:
    kept = read_dledger(dledger(checkpoint=noted), takes_all=False)
    assert (list(kept.sets), len(kept.beyond)) == ([], LAST)


OTHERS = [b"127.0.0.1:2", b"127.0.0.1:3"]


def of_three() -> JraftFiles:
    """The same of a member of a group of three."""
    files, log = jraft(), []
    for index, data in entries():
        head = JraftEntryHead.decode(data)
        entry = JraftEntry.FromString(head.content)
        if entry.peers:
            entry.peers.extend(OTHERS)
        log.append((index, JraftEntryHead(head.reserved, entry.SerializeToString()).encode()))
    kept = JraftFile.decode(files.snapshot[JRAFT_SNAPSHOT_META] or b"")
    meta = JraftSnapshotMeta.FromString(kept.content)
    meta.meta.peers.extend(OTHERS)
    changed = JraftFile(kept.name, meta.SerializeToString()).encode()
    return JraftFiles({**files.snapshot, JRAFT_SNAPSHOT_META: changed}, log)


def test_of_a_group_of_jrafts_only_the_snapshot_is_known_to_be_committed() -> None:
    kept = read_jraft(of_three(), unclean=False, takes_all=False)
    assert kept.index == SNAPSHOT_INDEX
    assert kept.beyond[0].endswith(": CONTROLLER_APPLY_BROKER_ID")
    assert all("HEART" not in each for each in kept.beyond)
    assert read_jraft(of_three(), unclean=False, takes_all=True).sets == READ["jraft"]().sets


# Damage


def test_a_log_that_ends_before_what_is_committed_is_refused() -> None:
    cut = whole()[: starts(20) + 60]
    with pytest.raises(FolderUnread, match=r"entries up to 34 are committed, and the log ends with 19: at "):
        read_dledger(dledger(cut), takes_all=False)
    zeroed = whole()[: starts(20)] + bytes(200)
    with pytest.raises(FolderUnread, match=r"entries up to 34 are committed, and the log ends with 19$"):
        read_dledger(dledger(zeroed), takes_all=True)


def test_a_torn_end_behind_what_is_committed_is_named() -> None:
    data = bytearray(whole())
    data[starts(33) + 4] = 0x7F
    kept = read_dledger(dledger(bytes(data), committed(30)), takes_all=False)
    assert [each[:8] for each in kept.beyond] == ["entry 31", "entry 32"]
    assert any("behind entry 32 cannot be read" in each for each in kept.notes)


def test_a_log_whose_beginning_is_gone_or_that_has_a_hole_is_refused() -> None:
    begin = starts(3)
    for files, says in (
        ({begin: whole()[begin:]}, "the log begins with entry 3: what was before it is gone"),
        ({0: whole()[:begin], begin + 9: b"x" * 80}, "a file of the log is missing"),
    ):
        with pytest.raises(FolderUnread, match=says):
            read_dledger(DledgerFiles("n1", files, committed(LAST)), takes_all=False)


def test_a_log_in_several_files_is_one() -> None:
    data, at = whole(), starts(7)
    blank = (-1).to_bytes(4, signed=True) + bytes(4)
    shifted = b""
    for entry in _read(data[at:]):
        shifted += DledgerEntry(
            entry.index, entry.term, entry.position + len(blank), 0, 0, 0, entry.body
        ).encode()
    files = DledgerFiles("n1", {0: data[:at] + blank, at + len(blank): shifted}, committed(LAST))
    assert read_dledger(files, takes_all=False).sets == READ["dledger"]().sets


def _read(data: bytes) -> list[DledgerEntry]:
    found, at = [], 0
    while any(data[at : at + 8]):
        entry, at = DledgerEntry.decode_at(data, at, len(data))
        found.append(entry)
    return found


def test_a_hole_in_jrafts_log_and_a_snapshot_that_is_cut_are_refused_by_name() -> None:
    log = entries()
    with pytest.raises(FolderUnread, match="entry 100 is missing in its log: one of 101 follows"):
        read_jraft(jraft([each for each in log if each[0] != 100]), unclean=False, takes_all=False)
    with pytest.raises(FolderUnread, match="entry 1 is missing in its log"):
        read_jraft(jraft(log[9:], snapshot=False), unclean=False, takes_all=False)
    files = {each.name: each.read_bytes() for each in SNAPSHOT.iterdir()}
    for name in files:
        with pytest.raises(FolderUnread, match="a file of the newest snapshot is missing"):
            read_jraft(JraftFiles(files | {name: None}, log), unclean=False, takes_all=False)
        with pytest.raises(FolderUnread, match="the newest snapshot: "):
            read_jraft(JraftFiles(files | {name: files[name][:-9]}, log), unclean=False, takes_all=False)


def test_a_snapshot_stands_for_a_log_that_nobody_can_read() -> None:
    files = jraft([])
    kept = read_jraft(JraftFiles(files.snapshot, None, "no reader"), unclean=False, takes_all=False)
    assert (kept.index, kept.beyond) == (SNAPSHOT_INDEX, ["whatever its log has behind entry 77: no reader"])
    with pytest.raises(FolderUnread, match="there is no snapshot, and its log cannot be read: no reader"):
        read_jraft(JraftFiles({}, None, "no reader"), unclean=False, takes_all=False)


@given(st.data())
def test_whatever_bytes_a_folder_has_are_read_or_refused(data: st.DataObject) -> None:
    """One byte of each is another one."""
    log = bytearray(whole())
    place = data.draw(st.integers(0, len(log) - 1))
    log[place] ^= data.draw(st.integers(1, 255))
    held = HeldSets.decode(HeldState.decode((SNAPSHOT / "data").read_bytes()).sets)
    turned = bytearray(held.replicas[0].value)
    turned[place % len(turned)] ^= data.draw(st.integers(1, 255))
    for read in (
        lambda: read_dledger(dledger(bytes(log)), takes_all=True),
        lambda: read_hessian(bytes(turned)),
        lambda: read_hessian(data.draw(st.binary(max_size=64))),
    ):
        with suppress(FolderUnread, RemoteProtocolError):
            read()


# Requests of jRaft's log, as Java decides them


def decided(*requests: tuple[int, dict[str, str | None]], unclean: bool = False) -> KeptRecord:
    """What they make behind the log that is there."""
    log = entries()
    index = itertools.count(log[-1][0] + 1)
    for code, fields in requests:
        command = Command(RemotingHeader(code=code, opaque=1, ext_fields=fields)).encode()
        at = next(index)
        entry = JraftEntry(type=2, term=1, index=at, data=command)
        log.append((at, JraftEntryHead(0, entry.SerializeToString()).encode()))
    return read_jraft(jraft(log), unclean=unclean, takes_all=False)


def elects(name: str, broker: int | None, now_ms: int) -> tuple[int, dict[str, str | None]]:
    header = ElectMasterRequest("c1", name, broker_id=broker, designate_elect=False, invoke_time=now_ms)
    return RequestCode.CONTROLLER_ELECT_MASTER, header.to_ext_fields()


NEVER_MS, LATE_MS = 1, 4_000_000_000_000


def test_an_election_without_anybody_alive_takes_the_master_away() -> None:
    state = {each.broker_name: each for each in decided(elects("a", None, LATE_MS)).sets}["a"]
    assert (state.HasField("master"), state.master_epoch, list(state.sync_state_set)) == (False, 4, [1, 2, 3])
    # A broker that asks in vain changes nothing, and neither does an election while the master lives.
    for asked in (elects("a", 2, LATE_MS), elects("a", None, NEVER_MS)):
        assert decided(asked).sets == READ["jraft"]().sets


def test_a_cleaned_set_is_gone_and_a_master_that_lives_is_not_cleaned() -> None:
    def cleans(**more: object) -> tuple[int, dict[str, str | None]]:
        header = CleanBrokerDataRequest("c1", "a", invoke_time=NEVER_MS, **more)  # type: ignore[arg-type]
        return RequestCode.CLEAN_BROKER_DATA, header.to_ext_fields()

    assert decided(cleans(is_clean_living_broker=False)).sets == READ["jraft"]().sets
    gone = decided(cleans(is_clean_living_broker=True))
    assert "a" not in {each.broker_name for each in gone.sets}
    kept = decided(cleans(is_clean_living_broker=False, broker_controller_ids_to_clean="4"))
    state = {each.broker_name: each for each in kept.sets}["a"]
    assert (list(state.broker_ids), state.next_broker_id) == ([1, 2, 3], 5)
