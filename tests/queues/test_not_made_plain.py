"""A topic of which a name server tells mapped queues is made plain by nobody who sends to another broker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from replispec.broker.rocketmq.core.new_topics import NewTopics
from replispec.runtime.rocketmq.client import Failed
from replispec.runtime.rocketmq.client.steps import Steps
from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.broker import SendMessageRequest, SendMessageResponse
from replispec.wire.rocketmq.codes import MessageFlag, RequestCode, ResponseCode
from tests.broker.simulated_set import NAME_SERVER, OK, message
from tests.queues.logical_sets import LogicalSets
from tests.queues.test_static_topics import detail, put

AWARE, OLDER = int(MessageFlag.LOGICAL_QUEUE), 0
CODES = RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE


def sent(sets: LogicalSets, broker: str, topic: str, *, code: int, flags: int = OLDER) -> Command:
    """One message to message queue 0 of a broker."""
    header: Any = message(topic, 0, sys_flag=flags)
    if code == RequestCode.SEND_MESSAGE:
        header = SendMessageRequest.from_ext_fields(
            {
                "producerGroup": "p",
                "topic": topic,
                "defaultTopic": "TBW102",
                "defaultTopicQueueNums": "4",
                "queueId": "0",
                "sysFlag": str(flags),
                "bornTimestamp": "1",
                "flag": "0",
            }
        )
    # One message of a batch: its length, magic, CRC, flag, body and properties.
    batch = bytes.fromhex("00000017" + "00" * 12 + "000000016d0000")
    body = batch if code == RequestCode.SEND_BATCH_MESSAGE else b"m"
    return sets.ask(sets.at[broker], code, header, body)


def enabled() -> LogicalSets:
    """The first of two brokers has all logical queues of L, the second one never heard of it."""
    sets = LogicalSets()
    first = sets.at["broker-a"]
    sets.mapped(first, 1)
    assert sets.commit(first, 1, 1) == (OK, "")
    sets.world.run_for(3_000)
    told = sets.route()
    assert told is not None
    assert told.logical_queues_info
    return sets


@pytest.mark.parametrize("flags", [AWARE, OLDER])
@pytest.mark.parametrize("code", CODES)
def test_a_message_never_makes_a_topic_plain_that_has_logical_queues(code: int, flags: int) -> None:
    sets = enabled()
    answer = sent(sets, "broker-b", "L", code=code, flags=flags)
    assert answer.header.code == ResponseCode.TOPIC_NOT_EXIST
    assert SendMessageResponse.from_ext_fields(answer.header.ext_fields or {}).queue_offset is None
    assert sets.broker(2)._topics.get("L") is None
    assert sent(sets, "broker-a", "L", code=code, flags=flags).header.code == OK


def test_a_message_never_makes_a_topic_plain_that_is_static() -> None:
    sets = LogicalSets()
    assert put(sets, sets.at["broker-a"], detail(1, [("broker-a", 0, 0)]))[0] == OK
    sets.world.run_for(3_000)
    topic = str(detail(1, [("broker-a", 0, 0)]).topic)
    answer = sent(sets, "broker-b", topic, code=RequestCode.SEND_MESSAGE_V2)
    assert answer.header.code == ResponseCode.TOPIC_NOT_EXIST


def test_a_topic_that_nobody_has_is_made_by_its_first_messages() -> None:
    """Those that come while the name server is asked wait for the same answer."""
    sets = enabled()
    fields = message("NEW", 0).to_ext_fields()
    asked = [
        sets.client.ask(sets.at["broker-b"], RequestCode.SEND_MESSAGE_V2, fields, b"m") for _ in range(3)
    ]
    sets.until(lambda: all(asked))
    assert [each[0].header.code for each in asked if isinstance(each[0], Command)] == [OK] * 3


def test_where_no_name_server_says_what_a_topic_is_no_message_makes_it() -> None:
    sets = enabled()
    sets.world.kill("nameserver")
    answer = sent(sets, "broker-b", "L", code=RequestCode.SEND_MESSAGE_V2)
    assert answer.header.code == ResponseCode.SERVICE_NOT_AVAILABLE
    assert sets.broker(2)._topics.get("L") is None
    sets.world.start("nameserver")
    sets.world.run_for(40_000)
    assert sent(sets, "broker-b", "NEW", code=RequestCode.SEND_MESSAGE_V2).header.code == OK


def test_the_first_message_of_a_group_s_retries_asks_no_name_server() -> None:
    sets = enabled()
    sets.world.kill("nameserver")
    assert sent(sets, "broker-b", "%RETRY%g", code=RequestCode.SEND_MESSAGE_V2).header.code == OK


@dataclass
class SilentPeers:
    """Answers when a test says so."""

    asked: list[tuple[str, Callable[[Any, int], None]]] = field(default_factory=list)

    def ask(self, whom: str, steps: Steps[Any], then: Callable[[Any, int], None], _now_ms: int) -> None:
        """Note whom, and who waits."""
        steps.close()
        self.asked.append((whom, then))


def asked_of(*servers: str) -> tuple[SilentPeers, Any, list[tuple[str, bool | None, int]]]:
    """Two messages that ask about one topic, and what they are told."""
    peers, told = SilentPeers(), list[tuple[str, bool | None, int]]()
    new: Any = NewTopics(cast("Any", peers), servers)
    for each in ("first", "second"):
        new.ask("T", each, lambda *said: told.append(said), 0)
    assert [whom for whom, _ in peers.asked] == [*servers]
    return peers, new, told


SILENT, DOUBTS = Failed("silent"), Failed("not all is known", code=int(ResponseCode.SERVICE_NOT_AVAILABLE))


@pytest.mark.parametrize(
    ("results", "comes_to"),
    [
        # One that began a moment ago knows nothing yet, whichever answers first.
        ((False, True), True),
        ((True, False), True),
        ((DOUBTS, True), True),
        ((False, False), False),
        # Who is silent keeps nobody waiting for ever, who refuses may know of logical queues.
        ((SILENT, False), False),
        ((False, SILENT), False),
        ((False, DOUBTS), None),
        ((DOUBTS, False), None),
        ((SILENT, SILENT), None),
    ],
)
def test_all_name_servers_are_asked_at_once(
    results: tuple[bool | Failed, bool | Failed], comes_to: bool | None
) -> None:
    peers, new, told = asked_of("one", "two")
    for each, (_, then) in zip(results, peers.asked, strict=True):
        then(each, 5)
    assert told == [("first", comes_to, 5), ("second", comes_to, 5)]
    assert new.count == 0


def test_who_waits_for_a_name_server_is_let_go_once() -> None:
    """When the broker stops, those that wait are its own to answer; a late answer finds none of them."""
    peers, new, told = asked_of("one")
    assert new.count == 2
    assert (new.take_all(), new.count) == (["first", "second"], 0)
    new.ask("T", "third", lambda *said: told.append(said), 6)
    late, asked = peers.asked
    late[1](False, 7)
    assert told == []
    asked[1](True, 8)
    assert (told, new.count) == ([("third", True, 8)], 0)


def test_a_topic_is_not_made_plain_that_any_name_server_knows() -> None:
    """The first of two is out of reach."""
    sets = LogicalSets()
    first = sets.at["broker-a"]
    sets.mapped(first, 1)
    assert sets.commit(first, 1, 1) == (OK, "")
    sets.world.run_for(3_000)
    node = sets.broker(2)
    node._sends._new_topics._name_servers = ("10.9.9.9:9876", NAME_SERVER)
    assert sent(sets, "broker-b", "L", code=RequestCode.SEND_MESSAGE_V2).header.code == (
        ResponseCode.TOPIC_NOT_EXIST
    )


def test_a_broker_without_name_servers_asks_nobody() -> None:
    assert not NewTopics(cast("Any", SilentPeers()), []).asks("T")
