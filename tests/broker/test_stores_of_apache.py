"""Stores that brokers of Apache RocketMQ left, killed or ended in order, with epochs and without.

`python -m lab.rocketmq.stores` made them, and what is expected is what Java's programs said themselves.
"""

from __future__ import annotations

import hashlib
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from replispec.broker.rocketmq.core.copied import CopiedTables
from replispec.broker.rocketmq.core.topics import Topics
from replispec.cli.main import command_line
from replispec.runtime.storage import StorageFailed
from replispec.runtime.storage.disk_shell import DiskFiles
from replispec.runtime.world import Outbox, Writes
from tests.runtime.log.sample_logs import WrittenStore

STORES = sorted(Path(__file__).with_name("stores").glob("*.tar.xz"))
FILE_BYTES = 1024 * 1024
TOPIC = "InteropTopic"
TRUTH = "truth.json"
Truth = Mapping[str, Any]


@pytest.fixture(params=STORES, ids=lambda path: path.name.removesuffix(".tar.xz"))
def left(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Truth]:
    """A folder that Java left, and what was said of it."""
    with tarfile.open(request.param) as archive:
        archive.extractall(tmp_path, filter="data")
    truth = json.loads((tmp_path / TRUTH).read_text())
    (tmp_path / TRUTH).unlink()
    return tmp_path, truth


def log_digest(folder: Path, end: int) -> str:
    """Of the log's bytes before its end."""
    files = sorted((folder / "commitlog").iterdir())
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)[:end]).hexdigest()


def test_stores_of_both_releases_with_and_without_epochs_are_tried() -> None:
    names = [path.name.removesuffix(".tar.xz") for path in STORES]
    assert names == [
        f"apache-{release}-{kind}" for release in ("5.4.0", "5.5.0") for kind in ("epochs", "plain")
    ]


def test_a_store_of_apaches_opens_without_a_byte_lost(left: tuple[Path, Truth]) -> None:
    folder, truth = left
    end = truth["end"]
    before = log_digest(folder, end)
    others = {
        path: path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "commitlog" not in path.parts
    }
    files = DiskFiles(folder)
    store = WrittenStore(files, file_bytes=FILE_BYTES)
    try:
        assert store.log.end == end
        assert [[each.epoch, each.start_offset] for each in store.epochs.entries] == truth["epochs"]
        records = [each.record for each in store.log.records(0, end)]
        found = {
            (each.queue_id, each.queue_offset): each.body.split()[0].decode()
            for each in records
            if each.topic == TOPIC
        }
    finally:
        files.close()
    assert {(queue, position): key for queue, position, key in truth["messages"]}.items() <= found.items()
    assert log_digest(folder, end) == before
    assert {path: path.read_bytes() for path in others} == others


def test_what_it_keeps_beside_the_log_is_read(left: tuple[Path, Truth]) -> None:
    folder, _ = left
    files = DiskFiles(folder)
    try:
        outbox = Outbox()
        topics = Topics(files, Writes(outbox), template_queues=4, auto_create=True)
        copied = CopiedTables(outbox, Writes(outbox), files)
    finally:
        files.close()
    topic = topics.get(TOPIC)
    assert topic is not None
    assert topic.write_queue_nums == 4
    assert copied.delays.table is not None
    assert copied.groups.table is not None


def test_a_store_of_apaches_is_found_whole(left: tuple[Path, Truth]) -> None:
    folder, truth = left
    result = CliRunner().invoke(command_line, ["check-store", str(folder), "--json"], standalone_mode=False)
    found = json.loads(result.stdout)
    assert (found["kind"], found["verdict"], found["end"]) == (
        "a store of Apache RocketMQ",
        "whole",
        truth["end"],
    )
    assert all(not each["damage"] for each in found["files"])


def test_a_byte_of_it_that_turned_is_refused_by_name_and_nothing_is_changed(left: tuple[Path, Truth]) -> None:
    folder, _ = left
    first = min((folder / "commitlog").iterdir())
    data = bytearray(first.read_bytes())
    data[200] ^= 0x10
    first.write_bytes(data)
    kept = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    files = DiskFiles(folder)
    try:
        with pytest.raises(StorageFailed, match=first.name):
            WrittenStore(files, file_bytes=FILE_BYTES)
    finally:
        files.close()
    assert {path: path.read_bytes() for path in kept} == kept
