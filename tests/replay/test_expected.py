"""The expected results of the shipped captures say the same as the people's side of the story."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

CAPTURES = Path(__file__).resolve().parents[2] / "spark_replay" / "captures"
NAMES = sorted(path.stem for path in CAPTURES.glob("*.pcap"))
WITH_CLIENT_LISTS = ("failover_lost", "hung_master")
WITH_FINAL_LOGS = ("older_copy", "power_cut")
OFFSET_DIGITS = 16


def read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((CAPTURES / name).read_text())
    return content


@pytest.mark.parametrize("name", NAMES)
def test_a_capture_is_the_one_that_its_truth_file_describes(name: str) -> None:
    truth = read(f"{name}.truth.json")
    data = (CAPTURES / f"{name}.pcap").read_bytes()
    assert truth["capture"] == f"{name}.pcap"
    assert truth["bytes"] == len(data)
    assert truth["sha256"] == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("name", NAMES)
def test_a_capture_names_no_folder_of_the_machine_it_was_made_on(name: str) -> None:
    folders = re.compile(rb"/(?:tmp|root|home|work)/")
    for path in (f"{name}.pcap", f"{name}.truth.json"):
        assert folders.search((CAPTURES / path).read_bytes()) is None


@pytest.mark.parametrize("name", NAMES)
def test_what_was_never_evaluated_is_unknown_and_nothing_else_is(name: str) -> None:
    expected = read(f"expected/{name}.json")
    assert expected["file"] == f"{name}.pcap"
    for rows in expected["groups"].values():
        for row in rows.values():
            assert row["verdict"] in ("ok", "diverged", "unknown", "violated")
            assert row["evaluated"] > 0 or row["verdict"] == "unknown"


@pytest.mark.parametrize("name", NAMES)
def test_losses_are_expected_where_sends_did_not_survive(name: str) -> None:
    expected = read(f"expected/{name}.json")
    lost = {group for group, rows in expected["groups"].items() if sends(rows)["verdict"] == "violated"}
    assert {loss["group"] for loss in expected["losses"]} == lost


@pytest.mark.parametrize("name", WITH_CLIENT_LISTS)
def test_the_expected_losses_are_what_the_consumer_missed(name: str) -> None:
    truth, expected = read(f"{name}.truth.json"), read(f"expected/{name}.json")
    answers = {each["message"]: each for each in truth["producer"]["messages"]}
    missed = set(answers) - set(truth["consumer"]["messages"])
    offsets = [int(answers[message]["msg_id"][OFFSET_DIGITS:], 16) for message in missed]
    (loss,) = expected["losses"]
    assert loss["acknowledged"] == len(missed) == truth["lost"]["count"]
    assert (loss["from_offset"], loss["to_offset"]) == (min(offsets), max(offsets))
    assert sends(expected["groups"][loss["group"]])["evaluated"] == truth["producer"]["acknowledged"]


@pytest.mark.parametrize("name", WITH_FINAL_LOGS)
def test_the_expected_losses_within_one_epoch_are_what_the_log_lacks(name: str) -> None:
    truth, expected = read(f"{name}.truth.json"), read(f"expected/{name}.json")
    offsets = {each["message"]: each["offset"] for each in truth["producer"]["messages"]}
    missing = [message for message in offsets if message not in set(truth["log"]["messages"])]
    (loss,) = expected["losses"]
    assert truth["lost"] == {"count": len(missing), "messages": missing}
    assert loss["acknowledged"] == len(missing) > 0
    assert loss["epoch"] == 1
    assert loss["from_offset"] == min(offsets[message] for message in missing)
    assert loss["to_offset"] == max(offsets[message] for message in missing)
    assert sends(expected["groups"][loss["group"]])["evaluated"] == truth["producer"]["acknowledged"]


@pytest.mark.parametrize("name", WITH_FINAL_LOGS)
def test_other_messages_lie_where_those_were_that_one_epoch_lost(name: str) -> None:
    truth = read(f"{name}.truth.json")
    lost = set(truth["lost"]["messages"])
    places = [(each["offset"], each["message"] in lost) for each in truth["producer"]["messages"]]
    assert {at for at, is_lost in places if is_lost} & {at for at, is_lost in places if not is_lost}


def sends(rows: dict[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = rows.get("acknowledged-send-survives", {"verdict": "unknown", "evaluated": 0})
    return row


def test_every_capture_has_an_expected_result() -> None:
    assert sorted(path.stem for path in (CAPTURES / "expected").glob("*.json")) == NAMES
