"""The worked examples of RIP-44 "Truncation example analysis", played by the real replica against the real
master: transcripts to be read. `REWRITE=1` writes them again, then read the diff.

Lists of epochs are those of the golden vectors; every record is 100 bytes, so that offsets are round.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from replispec.runtime.rocketmq.log import MessageStore
from replispec.wire.rocketmq.ha import HaEpochEntry
from replispec.wire.rocketmq.store import LogRecord
from replispec.wire.rocketmq.vectors import RULES
from tests.runtime.log.sample_logs import WrittenStore, disk, log_bytes, message, store_on
from tests.runtime.replication.pairs import MasterSide, Pair, ReplicaSide

FOLDER = Path(__file__).parent / "truncation"
RECORD_BYTES = 100
FILE_BYTES = 5_000
VECTORS: Mapping[str, Mapping[str, Any]] = {
    vector["name"]: vector
    for vector in RULES["consistent_point"]["vectors"]
    if vector["name"].startswith("RIP-44 example") or vector["name"] == "nothing shared"
}
SAMENESS = {True: "the same bytes as the master's", False: "other bytes than the master's"}


def record(epoch: int, offset: int) -> LogRecord:
    """What any broker that is master of this epoch stores at this offset."""
    return message(f"{epoch:02d}:{offset:05d}", topic="T")


def store_with(entries: Sequence[Mapping[str, int]], end: int) -> WrittenStore:
    """The store of a broker that has these epochs, and a log of whole records up to this end."""
    store = store_on(disk(), file_bytes=FILE_BYTES)
    deleted = entries[0]["start_offset"]
    if deleted:
        first = record(entries[0]["epoch"], deleted)
        first.physical_offset = deleted
        store.append_bytes(deleted, first.encode())
        store.epochs.keep([HaEpochEntry(entries[0]["epoch"], deleted)])
    for number, entry in enumerate(entries):
        if not deleted:
            store.begin_as_master(entry["epoch"])
        until = entries[number + 1]["start_offset"] if number + 1 < len(entries) else end
        while store.log.end < until:
            assert store.put(record(entry["epoch"], store.log.end)).size == RECORD_BYTES
        assert store.log.end == until
    store.flush()
    assert [(each.epoch, each.start_offset) for each in store.epochs.entries] == [
        (each["epoch"], each["start_offset"]) for each in entries
    ]
    return store


def listed(store: MessageStore) -> str:
    epochs = ", ".join(f"{entry.epoch} from {entry.start_offset}" for entry in store.epochs.entries)
    return f"epochs {epochs}; log ends at {store.log.end}"


def played(name: str, vector: Mapping[str, Any]) -> tuple[str, Pair]:
    """The transcript of a replica with `ours` that meets a master with `theirs`."""
    given = vector["given"]
    master = MasterSide(store_with(given["theirs"], given["their_end"]))
    replica = ReplicaSide(store=store_with(given["ours"], given["our_end"]))
    pair = Pair(master, replica)
    before = [f"replica: {listed(replica.store)}", f"master:  {listed(master.store)}"]
    pair.follow()
    after = [
        f"replica: {listed(replica.store)}, {SAMENESS[log_bytes(replica.store) == log_bytes(master.store)]}"
    ]
    about = textwrap.wrap(f"{name}. {vector['about']}".strip(), width=96)
    return "\n".join([*about, "", *before, "----", *pair.lines, "----", *after, ""]), pair


@pytest.mark.parametrize("name", VECTORS)
def test_a_replica_is_cut_as_the_proposal_works_it_out(name: str) -> None:
    vector = VECTORS[name]
    text, pair = played(name, vector)
    path = FOLDER / f"{name.replace(',', '').replace(' ', '_').lower()}.txt"
    if os.environ.get("REWRITE"):
        path.write_text(text)
    assert text == path.read_text()
    cuts = [offset for what, offset in pair.replica.reader.received if what == "truncated"]
    if vector["result"] is None:
        assert cuts == []
        assert pair.replica.store.log.end == vector["given"]["our_end"]
    else:
        assert cuts == ([vector["result"]] if vector["result"] < vector["given"]["our_end"] else [])
        assert pair.same()


def test_every_worked_example_has_its_transcript_and_no_other_is_there() -> None:
    numbers = {name.split()[2].rstrip(",") for name in VECTORS if name.startswith("RIP-44")}
    assert numbers == {"1", "2", "3", "4", "5", "6"}
    assert len(list(FOLDER.glob("*.txt"))) == len(VECTORS) == 8
