"""What is recorded of a simulated network reads as a capture."""

from __future__ import annotations

from pathlib import Path

from replispec.replay.engines.decoding import decode_capture
from replispec.runtime.sim import NetworkConditions, World
from replispec.runtime.world import Member
from replispec.wire.rocketmq.codes import RemotingFlag, RequestCode
from tests.replay.pcap_writer import pcap
from tests.sim.asker import Asker
from tests.sim.controller_script import CONTROLLER, controller, script
from tests.sim.wiretap import Wiretap


def test_every_question_and_answer_is_in_the_capture(tmp_path: Path) -> None:
    world = World(3, conditions=NetworkConditions(cut_per_mille=300, kernel_bytes=500))
    tap = world.network.tap = Wiretap()
    asker = Asker(CONTROLLER, script())
    world.add("controller", "127.0.0.1", controller)
    world.add("asker", "127.0.0.2", lambda _: [Member("asker", asker)])
    world.start("controller")
    world.start("asker")
    world.run_for(3_000)
    world.kill("controller")
    world.run_for(100)
    place = tmp_path / "simulated.pcap"
    place.write_bytes(pcap(tap.packets, link_type=101))
    decoded = decode_capture(place)
    rows = decoded.frames.to_pylist()
    asked = [row["code"] for row in rows if not row["flag"] & RemotingFlag.RESPONSE]
    assert asked == [question.code for question in asker.questions]
    assert len(rows) == 2 * len(asked)
    assert RequestCode.CONTROLLER_ELECT_MASTER in asked
