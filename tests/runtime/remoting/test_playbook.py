"""The playbook that tests of asking cores share: it carries answers back, and notices wrong requests."""

from __future__ import annotations

import pytest

from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.remoting import Failure, Outcome
from tests.playbook import Answer, Playbook

PEER = "127.0.0.1:9"
FIRST, SECOND = 1, 2


class Chatty:
    """A core that asks FIRST, and SECOND as soon as that is answered."""

    def __init__(self, playbook: Playbook) -> None:
        self.outcomes: list[Outcome] = []
        self._calls = playbook.calls

    def begin(self, now_ms: int) -> None:
        self._calls.ask(PEER, FIRST, self._answered, now_ms=now_ms, timeout_ms=100)

    def _answered(self, outcome: Outcome, now_ms: int) -> None:
        self.outcomes.append(outcome)
        if len(self.outcomes) == 1:
            self._calls.ask(PEER, SECOND, self._answered, now_ms=now_ms, timeout_ms=100)


def _echo(command: Command) -> Answer:
    return Answer(command.header.code + 100)


def test_answers_are_carried_back_until_nothing_more_is_sent() -> None:
    playbook = Playbook({PEER: _echo})
    chatty = Chatty(playbook)
    playbook >> chatty.begin << [FIRST, SECOND]
    codes = [each.header.code for each in chatty.outcomes if isinstance(each, Command)]
    assert codes == [101, 102]


def test_a_peer_that_is_not_there_is_a_failure_for_each_request() -> None:
    playbook = Playbook({})
    chatty = Chatty(playbook)
    playbook >> chatty.begin << []
    assert [type(each) for each in chatty.outcomes] == [Failure, Failure]


@pytest.mark.parametrize("wrong", [[], [FIRST], [SECOND, FIRST], [FIRST, SECOND, SECOND]], ids=str)
def test_other_requests_than_those_named_are_noticed(wrong: list[int]) -> None:
    playbook = Playbook({PEER: _echo})
    with pytest.raises(AssertionError, match=r"sent \[1, 2\]"):
        playbook >> Chatty(playbook).begin << wrong


def test_each_look_begins_where_the_last_one_ended() -> None:
    playbook = Playbook({PEER: lambda _command: None})
    chatty = Chatty(playbook)
    playbook >> chatty.begin << [FIRST]
    playbook << []
    playbook.now_ms += 100
    playbook >> (lambda _now_ms: None) << [SECOND]
