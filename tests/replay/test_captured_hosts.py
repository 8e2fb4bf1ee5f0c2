"""Four hosts that really were four: both ends of each connection captured, clocks apart, one translated.

`spark_replay/captures/hosts` holds what `make hosts` recorded: a capture of each host, one of the wire
between them, and what the client itself knows.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from replispec.replay.engines.local import LocalEngine
from replispec.replay.engines.results import LOST_NAME, CaptureResult, Options
from replispec.replay.engines.run import EngineName, replay
from replispec.replay.hosts.merging import merge
from replispec.replay.hosts.told import Merged
from replispec.replay.redact.run import redact
from tests.replay.test_hosts import counted, judged

CAPTURES = Path(__file__).parents[2] / "spark_replay" / "captures" / "hosts"
TRUTH: dict[str, Any] = json.loads((CAPTURES / "truth.json").read_text())
HOSTS = tuple(TRUTH["hosts"])
WIRE = CAPTURES / "wire.pcap"
MILLISECOND = 10**6
ALL_ORDERS = os.environ.get("REPLISPEC_SPREAD") == "all"
ORDERS = list(itertools.permutations(HOSTS)) if ALL_ORDERS else [HOSTS, HOSTS[::-1]]


def paths(hosts: tuple[str, ...]) -> list[Path]:
    return [CAPTURES / f"{host}.pcap" for host in hosts]


@cache
def replayed(*captures: Path) -> tuple[Merged | None, CaptureResult]:
    """One capture as it is, several of them merged."""
    with TemporaryDirectory() as folder:
        (story,), made = captures[:1], None
        if captures[1:]:
            made = merge(captures, story := Path(folder) / "story.pcapng")
        (found,) = LocalEngine().results([story], Path(folder), Options(), lambda *_: None)
    return made, found


def merged(hosts: tuple[str, ...] = HOSTS) -> tuple[Merged, CaptureResult]:
    made, found = replayed(*paths(hosts))
    assert made is not None
    return made, found


@pytest.mark.parametrize("hosts", ORDERS, ids="-".join)
def test_both_ends_of_every_connection_on_four_hosts_give_the_verdicts_of_one_clean_capture(
    hosts: tuple[str, ...],
) -> None:
    made, found = merged(hosts)
    _, clean = replayed(WIRE)
    assert counted(found) == counted(clean)
    assert judged(found) == judged(clean)
    assert (made.warnings, made.doubtful) == ((), 0)


def test_a_capture_of_the_wire_beside_those_of_the_hosts_changes_nothing() -> None:
    _, found = merged((*HOSTS, "wire"))
    assert judged(found) == judged(replayed(WIRE)[1])


@pytest.mark.parametrize("missing", HOSTS)
def test_without_one_host_no_loss_is_hidden_and_nothing_is_invented(missing: str) -> None:
    _, found = merged(tuple(host for host in HOSTS if host != missing))
    _, clean = replayed(WIRE)
    broken = {each.invariant for each in found.findings if each.verdict.value in ("violated", "diverged")}
    assert broken == {
        each.invariant for each in clean.findings if each.verdict.value in ("violated", "diverged")
    }
    assert judged(found)[1] == judged(clean)[1]


def test_what_is_lost_is_what_the_client_had_acknowledged_and_could_not_read_back(tmp_path: Path) -> None:
    made = merge(paths(HOSTS), tmp_path / "story.pcapng")
    replay([tmp_path / "story.pcapng"], tmp_path / "out", EngineName.LOCAL, Options(), merged=made)
    lost = [json.loads(line) for line in (tmp_path / "out" / LOST_NAME).read_text().splitlines()]
    (row,) = merged()[1].losses
    assert len(lost) == row.acknowledged == len(TRUTH["lost"]) > 0
    assert row.epoch == 1


def test_captures_of_hosts_that_were_redacted_with_one_key_are_merged_to_the_same_verdicts(
    tmp_path: Path,
) -> None:
    """Names and addresses become the same everywhere, on both sides of the translation, too."""
    for host in HOSTS:
        redact(CAPTURES / f"{host}.pcap", tmp_path / f"{host}.pcap", b"a key that is only good for tests")
    made, found = replayed(*(tmp_path / f"{host}.pcap" for host in HOSTS))
    _, clean = replayed(WIRE)
    assert counted(found) == counted(clean)
    assert unnamed(found) == unnamed(clean)
    assert made is not None
    assert len(made.renamings) == len(merged()[0].renamings)


def unnamed(found: CaptureResult) -> tuple[object, object]:
    """Verdicts with their counts and losses, by nobody's name."""
    rows = sorted((each.invariant, each.verdict, sorted(each.counts.items())) for each in found.findings)
    return rows, [(each.epoch, each.from_offset, each.acknowledged) for each in found.losses]


def test_the_clocks_that_are_told_are_those_of_the_hosts() -> None:
    made, _ = merged()
    ahead = {f"{host}.pcap": clock["ahead_ns"] for host, clock in TRUTH["clocks"].items()}
    drift = {f"{host}.pcap": 1e6 * clock["drift"] for host, clock in TRUTH["clocks"].items()}
    for clock in made.clocks[1:]:
        apart = ahead[clock.file] - ahead[clock.reference]
        assert clock.offset_ns == pytest.approx(apart, abs=MILLISECOND)
        assert abs(apart) >= 300 * MILLISECOND
        assert clock.both_ways
        assert clock.drift_ppm == pytest.approx(drift[clock.file] - drift[clock.reference], abs=20)


def test_every_name_of_the_host_behind_the_translation_is_told() -> None:
    made, _ = merged()
    ((hidden, inside),) = TRUTH["behind_translation"].items()
    outside = TRUTH["hosts"][hidden]
    ends = {(each.seen.partition(":")[0], each.shown.partition(":")[0]) for each in made.renamings}
    assert ends == {(outside, inside), (inside, outside)}
    listens = f"{outside}:{TRUTH['ports'][hidden]}"
    assert listens in {each.shown for each in made.renamings if each.file == f"{hidden}.pcap"}


def test_the_captures_are_those_that_the_truth_describes_and_name_no_folder() -> None:
    folders = re.compile(rb"/(?:tmp|root|home|work)/")
    for name, said in TRUTH["captures"].items():
        data = (CAPTURES / name).read_bytes()
        assert (len(data), hashlib.sha256(data).hexdigest()) == (said["bytes"], said["sha256"])
        assert folders.search(data) is None
    assert folders.search((CAPTURES / "truth.json").read_bytes()) is None


def test_a_large_segment_outside_came_in_several_inside() -> None:
    """The captures differ where real ones do: who stands behind a network card sees other segments, and those
    are no copies."""
    _, found = merged()
    assert found.capture.packets_tcp > replayed(WIRE)[1].capture.packets_tcp
