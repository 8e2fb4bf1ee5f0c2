"""Three brokers of ours under three Java controllers, with either of their two ways to agree on a log.

Only kill -9 strikes: what a controller of Java's decides after it stood still is not ours to show.
"""

from __future__ import annotations

from lab.rocketmq.apache import Apache, JraftApache
from lab.rocketmq.interop.group import Programs, play
from lab.rocketmq.interop.rounds import by_turns
from lab.rocketmq.interop.stage import Stage
from lab.rocketmq.roles import OURS


def under_dledger(stage: Stage) -> None:
    """Controllers that agree by DLedger. Raises LabError."""
    apache = Apache(stage.rounds.release) if stage.rounds.release else stage.tools.apache
    play(stage, Programs(apache, OURS, apache), by_turns(stage.rounds.count))


def under_jraft(stage: Stage) -> None:
    """Controllers that agree by jRaft. Raises LabError."""
    release = stage.rounds.release or stage.tools.apache.release
    play(stage, Programs(JraftApache(release), OURS, Apache(release)), by_turns(stage.rounds.count))
