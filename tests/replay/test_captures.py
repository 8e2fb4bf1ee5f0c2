"""The captures of real clusters that come with the project: every frame, nothing undecoded."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from replispec.replay.engines.decoding import decode_capture

CAPTURES = Path(__file__).parents[2] / "spark_replay" / "captures"
# Counted by an independent decoder: frames of remoting, frames of replication.
FRAMES = {
    "a_first_start": (745, 28),
    "c_syncstateset": (1014, 43),
    "d_async_learner": (1200, 74),
    "f1_510_first_start": (613, 24),
    "g_mqadmin": (743, 36),
    "k1_oldbroker_newcontroller": (36, 0),
    "k2_newbroker_oldcontroller": (58, 0),
    "m_mtu1500": (485, 46),
    "n_learner_alone": (250, 11),
    "o_brokerid_change": (905, 46),
    "older_copy": (501, 207),
    "power_cut": (573, 18),
    "t_binary_header": (367, 12),
}


@pytest.mark.parametrize("name", FRAMES)
def test_all_frames_of_a_real_capture_are_decoded(name: str) -> None:
    decoded = decode_capture(CAPTURES / f"{name}.pcap")
    counts = Counter(decoded.frames["protocol"].to_pylist())
    assert (counts["remoting"], counts["ha_master"] + counts["ha_replica"]) == FRAMES[name]
    assert sum(decoded.streams["bytes_undecoded"].to_pylist()) == 0
    assert all(decoded.frames["complete"].to_pylist())
    assert decoded.holes.num_rows == 0
    assert decoded.warnings == ()
    foreign = decoded.streams.filter([kind == "foreign" for kind in decoded.streams["protocol"].to_pylist()])
    assert sum(foreign["bytes_payload"].to_pylist()) == 0
