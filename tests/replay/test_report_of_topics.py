"""What the report says in short of a topic with logical queues."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from replispec.replay.engines.results import Options
from replispec.replay.engines.run import EngineName, replay
from replispec.replay.judges.rocketmq.queues import QUEUE_RULES
from tests.replay import queue_faults
from tests.replay.faults import Edit, taken, written
from tests.replay.pcap_writer import pcap
from tests.replay.queue_faults import spoken
from tests.replay.queues import static_topic

KEPT = len(QUEUE_RULES) - 1
IDLE = "of 1 the capture holds nothing."
DUE = "11 times a consumer group went past an acknowledged message that it wanted"


def in_short(edit: Edit, folder: Path) -> list[str]:
    path = folder / "told.pcap"
    path.write_bytes(pcap(static_topic().packets(), nanoseconds=True))
    path.write_bytes(pcap(written(edit(spoken(taken(path), "PYTHON"))), nanoseconds=True))
    replay([path], folder / "result", EngineName.LOCAL, Options())
    page = (folder / "result" / "report.html").read_text("utf-8")
    (section,) = re.findall(r'<section id="in-short">.*?</section>', page, re.DOTALL)
    return [html.unescape(each) for each in re.findall(r"<dd>(.*?)</dd>", section, re.DOTALL)]


@pytest.mark.parametrize(
    ("edit", "got", "rules"),
    [
        (
            list,
            f"{DUE}: it had got 11 of them and missed 0.",
            f"{KEPT} rules kept; of 1 the capture holds nothing.",
        ),
        (
            queue_faults.a_border_before_the_end,
            f"{DUE}: it had got 8 of them and missed 3.",
            f"{KEPT - 1} rules kept, 1 rule broken (acknowledged-is-read); of 1 the capture holds nothing.",
        ),
        (
            queue_faults.a_position_that_falls_elsewhere,
            f"{DUE}: it had got 11 of them and missed 0.",
            f"{KEPT - 1} rules kept, 1 rule in part not judged (positions-never-fall); {IDLE}",
        ),
    ],
    ids=["kept", "broken", "unknown"],
)
def test_a_topic_is_told_in_two_lines(edit: Edit, got: str, rules: str, tmp_path: Path) -> None:
    messages, kept = in_short(edit, tmp_path)
    assert messages.endswith(got)
    assert kept == f"Of {len(QUEUE_RULES)} rules about such a topic: {rules}"
