"""What a controller answers, in transcripts to be read: `REWRITE=1` writes them again, then read the diff.

A transcript is a list of steps, each with what came of it below a line of dashes:
    apply 1                     broker 1 applies for the id 1 (1013); `apply 1 as 2`: broker 2 does
    next | register 1 [AT] | info | elect 1 | designate 2 | alter 1 EPOCH SET_EPOCH 1,2
    clean 1,2 | clean all
    clean! 1                    the living, too
    beat 1 [EPOCH OFFSET]       a heartbeat, each broker on a connection of its own
    close 1 | wait MS | restart
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from replispec.runtime.primitives.headers import Header
from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.controller import (
    ApplyBrokerIdRequest,
    CleanBrokerDataRequest,
    GetNextBrokerIdRequest,
)
from tests.controller import conversation

# How names end that a number had in older releases alone.
OLDER = "_UNTIL_5_1_0"
FOLDER = Path(__file__).parent / "transcripts"
Step = Callable[..., list[str]]


class Stage:
    """One controller, an asker's connection, and one connection for the heartbeats of each broker."""

    def __init__(self) -> None:
        self.journal = conversation.StoredJournal()
        self.start()

    def start(self) -> None:
        """Start the controller on its journal, with nobody connected."""
        self.talk = conversation.controller(self.journal)
        self.asker = self.talk.connect()
        self.brokers: dict[int, int] = {}
        self.talk.effects.clear()

    def play(self, line: str) -> list[str]:
        """Take one step and tell what came of it."""
        name, *words = line.split()
        step: Step = getattr(self, "step_" + name.replace("!", "_living"))
        found = [*step(*words), *(f"dials {each.address}" for each in self.talk.dialled())]
        found += [f"notes {what}" for what in self.talk.noted() if what != "log read"]
        self.talk.effects.clear()
        return found

    def ask(self, code: int, header: Header, body: bytes = b"") -> list[str]:
        """A request, and its answer as text."""
        return shown(self.talk.ask(self.asker, code, header, body))

    def step_apply(self, broker: str, _as: str = "", other: str = "") -> list[str]:
        """1013."""
        owner = conversation.address(int(other or broker))
        header = ApplyBrokerIdRequest(
            conversation.CLUSTER, conversation.SET, int(broker), f"{owner};1700000000000"
        )
        return self.ask(RequestCode.CONTROLLER_APPLY_BROKER_ID, header)

    def step_next(self) -> list[str]:
        """1012."""
        header = GetNextBrokerIdRequest(conversation.CLUSTER, conversation.SET)
        return self.ask(RequestCode.CONTROLLER_GET_NEXT_BROKER_ID, header)

    def step_register(self, broker: str, at: str | None = None) -> list[str]:
        """1003."""
        return self.ask(RequestCode.CONTROLLER_REGISTER_BROKER, conversation.registration(int(broker), at))

    def step_info(self) -> list[str]:
        """1004."""
        return self.ask(RequestCode.CONTROLLER_GET_REPLICA_INFO, conversation.question())

    def step_elect(self, broker: str) -> list[str]:
        """1002 of a broker."""
        return self.ask(RequestCode.CONTROLLER_ELECT_MASTER, conversation.election(int(broker)))

    def step_designate(self, broker: str) -> list[str]:
        """1002 of an operator."""
        return self.ask(
            RequestCode.CONTROLLER_ELECT_MASTER, conversation.election(int(broker), designate=True)
        )

    def step_alter(self, master: str, epoch: str, set_epoch: str, brokers: str) -> list[str]:
        """1001."""
        body = conversation.members(int(set_epoch), *map(int, brokers.split(",")))
        header = conversation.alteration(int(master), int(epoch))
        return self.ask(RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET, header, body)

    def step_clean(self, brokers: str, *, living: bool = False) -> list[str]:
        """1011."""
        named = None if brokers == "all" else brokers.replace(",", ";")
        header = CleanBrokerDataRequest(conversation.CLUSTER, conversation.SET, None, named, living)
        return self.ask(RequestCode.CLEAN_BROKER_DATA, header)

    def step_clean_living(self, brokers: str) -> list[str]:
        """1011, of the living too."""
        return self.step_clean(brokers, living=True)

    def step_beat(self, broker: str, epoch: str = "0", offset: str = "0") -> list[str]:
        """904."""
        if int(broker) not in self.brokers:
            self.brokers[int(broker)] = self.talk.connect()
        header = conversation.heartbeat(int(broker), epoch=int(epoch), max_offset=int(offset))
        return shown(self.talk.ask(self.brokers[int(broker)], RequestCode.BROKER_HEARTBEAT, header))

    def step_close(self, broker: str) -> list[str]:
        """The end of a broker's connection."""
        self.talk.close(self.brokers.pop(int(broker)))
        return []

    def step_wait(self, ms: str) -> list[str]:
        """Time passes."""
        self.talk.wait(int(ms))
        return []

    def step_restart(self) -> list[str]:
        """The controller starts again on what its disk holds."""
        self.start()
        return []


def shown(answer: Command) -> list[str]:
    """An answer as lines of text."""
    names = [each for each in ResponseCode.__members__ if ResponseCode[each] == answer.header.code]
    name = next((each for each in names if not each.endswith(OLDER)), str(answer.header.code))
    fields = " ".join(f"{key}={value}" for key, value in (answer.header.ext_fields or {}).items())
    lines = [f"{name} {fields}".strip()]
    return lines + ([answer.body.decode()] if answer.body else [])


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.txt")), ids=lambda path: path.stem)
def test_a_controller_answers_as_its_transcript_says(path: Path) -> None:
    stage, played = Stage(), []
    expected = path.read_text()
    for part in expected.split("\n\n"):
        step = part.strip().splitlines()[0]
        if step.startswith("#"):
            played.append(part.strip())
        else:
            played.append("\n".join([step, "----", *stage.play(step)]))
    text = "\n\n".join(played) + "\n"
    if os.environ.get("REWRITE"):
        path.write_text(text)
    assert text == expected
