"""Paths of the store's two layouts and of a folder: made, read, and those of a real Kafka."""

from __future__ import annotations

import json

import pytest

from replispec.runtime.primitives.errors import LocalProtocolError
from replispec.runtime.primitives.paths import PathTemplate
from replispec.wire.kafka import paths
from tests.wire_kafka.written import FOLDER

SAID = [json.loads(line) for line in (FOLDER / "nodes.jsonl").read_text("utf-8").splitlines()]
# Folders of the real store that no path is in, as nothing of replication is below them.
NO_MATTER = (
    *("/brokers", "/brokers/seqid", "/cluster", "/admin", "/config", "/config/brokers", "/config/changes"),
    *("/config/clients", "/config/ips", "/config/topics", "/config/users"),
)


def the(layout: str, path: str) -> PathTemplate | None:
    """The only template of the layout that this path is of."""
    found = [each for each in paths.PATHS[layout] if each.read(path) is not None]
    assert len(found) <= 1, (path, found)
    return found[0] if found else None


@pytest.mark.parametrize("said", SAID, ids=[said["path"] for said in SAID])
def test_every_node_of_a_real_store_has_its_path_its_life_and_what_it_holds(said: dict[str, object]) -> None:
    found = the("apache", str(said["path"]))
    assert (found is None) == (said["path"] in NO_MATTER)
    if found is not None:
        assert found.is_ephemeral == said["owner"]
        assert (found.holds is not None) == (said["value"] is not None)


def test_every_file_of_a_real_folder_has_its_path() -> None:
    files = [file for file in (FOLDER / "folder").rglob("*") if file.is_file()]
    found = {the("folder", file.relative_to(FOLDER / "folder").as_posix()) for file in files}
    assert found == {paths.FOLDER_SEGMENT, paths.FOLDER_EPOCHS, paths.FOLDER_OFFSETS, paths.FOLDER_IDENTITY}


@pytest.mark.parametrize(
    ("template", "values", "path"),
    [
        (paths.DESIGN_LEADER_AND_ISR, {"topic": "t", "partition": 12}, "/brokers/topics/t/12/leaderAndISR"),
        (paths.DESIGN_REASSIGNMENT, {"topic": "t", "partition": 0}, "/admin/partitions_reassigned/t/0"),
        (paths.APACHE_STATE, {"topic": "a.b-c", "partition": 3}, "/brokers/topics/a.b-c/partitions/3/state"),
        (paths.APACHE_ISR_CHANGE, {"number": 7}, "/isr_change_notification/isr_change_0000000007"),
        (
            paths.FOLDER_SEGMENT,
            {"topic": "a-1", "partition": 2, "base_offset": 345},
            "a-1-2/00000000000000000345.log",
        ),
        (
            paths.FOLDER_DELETED_LOG,
            {"topic": "a-1", "partition": 2, "unique": "0f"},
            "a-1-2.0f-delete",
        ),
        (paths.FOLDER_OFFSETS, {}, "replication-offset-checkpoint"),
    ],
)
def test_a_path_is_made_and_read(template: PathTemplate, values: dict[str, str | int], path: str) -> None:
    assert template.at(**values) == path
    assert template.read(path) == values


@pytest.mark.parametrize(
    "path",
    [
        "/brokers/topics/t/partitions/03/state", "/brokers/topics/t/partitions/-1/state",
        "/brokers/topics/t/partitions/x/state", "/brokers/topics//partitions/0/state",
        "/brokers/topics/t/partitions/0/state/", "brokers/topics/t/partitions/0/state",
        "/brokers/topics/t/u/partitions/0/state", "/brokers/topics/t/partitions/0/state\n",
        "/brokers/topics/t/partitions/99999999999999999999/state",
    ],
)  # fmt: skip
def test_a_path_that_is_none_is_not_read(path: str) -> None:
    assert paths.APACHE_STATE.read(path) is None


@pytest.mark.parametrize(
    "values",
    [
        {}, {"topic": "t"}, {"topic": "t", "partition": 0, "more": 1}, {"topic": "a/b", "partition": 0},
        {"topic": "", "partition": 0}, {"topic": "t", "partition": -1}, {"topic": "t", "partition": "0"},
    ],
)  # fmt: skip
def test_values_that_would_not_read_back_make_no_path(values: dict[str, str | int]) -> None:
    with pytest.raises(LocalProtocolError):
        paths.APACHE_STATE.at(**values)


def test_who_does_what_is_data() -> None:
    assert paths.APACHE_STATE.changed_by == {"CONTROLLER": "by version", "BROKER": "by version"}
    assert paths.DESIGN_CONTROLLER.watched_by == {"BROKER": "exists"}
    assert paths.DESIGN_CONTROLLER.is_ephemeral
    assert paths.APACHE_ISR_CHANGE.is_sequential
    assert not paths.APACHE_ISR_CHANGE.is_ephemeral


def test_what_a_store_is_given_for_the_next_of_a_sequential_path_is_all_before_its_number() -> None:
    prefix = paths.APACHE_ISR_CHANGE.prefix
    assert prefix == "/isr_change_notification/isr_change_"
    assert paths.APACHE_ISR_CHANGE.read(f"{prefix}0000000007") == {"number": 7}
