"""Captures of all hosts make the story that one clean capture tells: verdicts, counts, losses.

Every capture of the project is dealt out to three hosts with clocks 300 ms apart that drift, with losses of
their own, and one host behind a translation of addresses.
"""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from replispec.replay.engines.local import LocalEngine
from replispec.replay.engines.results import CaptureResult, Options
from replispec.replay.hosts.merging import Merged, merge
from tests.replay import mess
from tests.replay.hosts import Places, at_hosts
from tests.replay.test_mess import FILES, clean, header_and_packets, invented, told

NAMES = sorted(set(FILES) - {"linux_vxlan"})
PLACES = {
    "clocks apart": Places(),
    "losses at each": Places(lost=0.05),
    "one sees itself otherwise": Places(lost=0.02, hides="own"),
    "one is seen otherwise": Places(lost=0.02, hides="others"),
}

# So short that a host may share no packet with another one.
FEW = ("k1_oldbroker_newcontroller", "k2_newbroker_oldcontroller")


def merged(name: str, places: Places, folder: Path) -> tuple[Merged, CaptureResult]:
    header, packets = header_and_packets(name)
    paths = []
    for number, own in enumerate(at_hosts(packets, random.Random(name), places)):
        paths.append(folder / f"host{number}.pcap")
        paths[-1].write_bytes(mess.written(header, own))
    made = merge(paths, folder / "story.pcapng")
    (found,) = LocalEngine().results([folder / "story.pcapng"], folder, Options(), lambda *_: None)
    return made, found


def judged(found: CaptureResult) -> tuple[object, object]:
    """Verdicts with their counts, and losses, whatever the capture is called."""
    return told(replace(found, losses=tuple(replace(each, file="") for each in found.losses)))


def counted(found: CaptureResult) -> tuple[int, ...]:
    row = found.capture
    return row.frames_remoting, row.frames_ha, row.holes, row.bytes_undecoded, row.bytes_foreign


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("places", PLACES)
def test_many_hosts_tell_what_one_clean_capture_tells(places: str, name: str, tmp_path: Path) -> None:
    made, found = merged(name, PLACES[places], tmp_path)
    assert counted(found) == counted(clean(name))
    assert judged(found) == judged(clean(name))
    assert all(clock.reference for clock in made.clocks[1:]) or name in FEW


@pytest.mark.parametrize("name", NAMES)
def test_where_numbers_are_changed_too_nothing_is_invented_and_what_counts_twice_is_said(
    name: str, tmp_path: Path
) -> None:
    made, found = merged(name, Places(hides="others", renumbers=True), tmp_path)
    assert invented(found, clean(name)) == set()
    assert judged(found)[1] == judged(clean(name))[1]
    if counted(found) != counted(clean(name)):
        assert made.doubtful
        assert "may be one behind a translation" in " ".join(made.warnings)
