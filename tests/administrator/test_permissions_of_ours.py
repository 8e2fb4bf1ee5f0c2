"""Topics of all forms closed to producers and opened again, among brokers of ours, by the command."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from click.testing import CliRunner

from replispec.administrator.rocketmq import NotAsWantedError, static_topics
from replispec.administrator.rocketmq.logical_migration import moved
from replispec.administrator.rocketmq.logical_queues import made as logical_queues_made
from replispec.administrator.rocketmq.logical_queues import restated
from replispec.administrator.rocketmq.logical_topics import known
from replispec.administrator.rocketmq.remapping import grown
from replispec.administrator.rocketmq.static_topics import TopicAtBrokers
from replispec.administrator.rocketmq.topics import TopicWanted, updated
from replispec.cli.rocketmq.admin import logical_queues, update_topic_perm
from replispec.cli.rocketmq.admin.asking import RefusedToAskError
from replispec.runtime.rocketmq.queues import rows
from replispec.wire.rocketmq.codes import ResponseCode
from tests.administrator.own_brokers import CLUSTER, NAME_SERVER, TOPIC, OwnBrokers

NAMES = [NAME_SERVER]
EPOCHS = count(1_700_000_000_000)
FORBIDDEN = int(ResponseCode.NO_PERMISSION)
Run = Callable[..., tuple[str, int]]


def permitting(brokers: OwnBrokers, monkeypatch: pytest.MonkeyPatch) -> Run:
    """updateTopicPerm typed among these brokers: text and exit code."""

    def ask(plan: Any) -> Any:
        try:
            return brokers.carried_out(plan)
        except NotAsWantedError as error:
            raise RefusedToAskError(str(error)) from error

    def run(*words: str) -> tuple[str, int]:
        arguments = ["-n", NAME_SERVER, *words]
        came = CliRunner().invoke(update_topic_perm.command, arguments, standalone_mode=False)
        assert came.exception is None, came.exception
        brokers.world.run_for(3_000)
        return came.output, came.return_value

    monkeypatch.setattr(logical_queues, "ask", ask)
    monkeypatch.setattr(update_topic_perm, "wall_ms", lambda: next(EPOCHS))
    return run


def sent(brokers: OwnBrokers, number: int, topic: str, queue: int = 0) -> tuple[int, int | None]:
    """The code of a message that is sent to a queue, and its offset."""
    code, said = brokers.send(brokers.addresses[f"broker{number}"], b"m", topic=topic, queue=queue)
    return code, said.queue_offset


def test_a_topic_with_logical_queues_stays_closed_wherever_its_queues_move(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    brokers = OwnBrokers(2)
    run = permitting(brokers, monkeypatch)
    wanted = TopicWanted(TOPIC, 1, 1, 6)
    brokers.carried_out(logical_queues_made(NAMES, wanted, CLUSTER, next(EPOCHS)))
    one, two = brokers.addresses["broker1"], brokers.addresses["broker2"]
    text, code = run("-c", CLUSTER, "-t", TOPIC, "-p", "4")
    lines = [f"update topic perm from 6 to 4 in {each} success.\n" for each in (one, two)]
    assert (text, code) == ("".join(lines), 0)
    assert [sent(brokers, number, TOPIC)[0] for number in (1, 2)] == [FORBIDDEN, FORBIDDEN]
    # A broker that lacks the topic is told what clients may do when it gets the first queue.
    brokers.joins(3)
    brokers.carried_out(moved(NAMES, TOPIC, 0, "broker3"))
    brokers.carried_out(restated(NAMES, TOPIC, next(EPOCHS)))
    assert sent(brokers, 3, TOPIC)[0] == FORBIDDEN
    text, code = run("-b", brokers.addresses["broker3"], "-t", TOPIC, "-p", "6")
    assert (text, code) == (f"update topic perm from 4 to 6 in {brokers.addresses['broker3']} success.\n", 0)
    assert sent(brokers, 3, TOPIC) == (0, 0)
    assert sent(brokers, 2, TOPIC)[0] == FORBIDDEN
    text, code = run("-b", two, "-t", TOPIC, "-p", "4")
    assert (text, code) == (f"{two}: new perm equals to the old one!\n", 0)


def test_a_broker_that_joins_gets_logical_queues_of_its_own_and_is_closed_as_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    brokers = OwnBrokers(1)
    run = permitting(brokers, monkeypatch)
    wanted = TopicWanted(TOPIC, 2, 2, 6)
    brokers.carried_out(logical_queues_made(NAMES, wanted, CLUSTER, next(EPOCHS)))
    run("-c", CLUSTER, "-t", TOPIC, "-p", "4")
    brokers.joins(2)
    with pytest.raises(NotAsWantedError, match="has mapped queues at other brokers: 416 or 513"):
        brokers.carried_out(updated(NAMES, wanted, cluster=None, broker=brokers.addresses["broker2"]))
    brokers.carried_out(logical_queues_made(NAMES, wanted, CLUSTER, next(EPOCHS)))
    found = brokers.carried_out(known(NAMES, TOPIC))
    assert [row[2:] for row in rows(found.queues.values())] == [(f"{index}", "Normal") for index in range(4)]
    assert found.stated is not None
    assert (found.stated.enabled.queues, found.stated.enabled.total) == (4, 4)
    assert sent(brokers, 2, TOPIC)[0] == FORBIDDEN


def test_a_static_topic_is_closed_at_all_brokers_with_its_mapping(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = OwnBrokers(2)
    run = permitting(brokers, monkeypatch)
    at: TopicAtBrokers = brokers.carried_out(static_topics.known(NAMES, "Static"))
    made = grown(at.topic, 2, ["broker1", "broker2"], at.every(["broker1"]), next(EPOCHS))
    brokers.carried_out(static_topics.carried_out(made, at.brokers))
    assert sent(brokers, 1, "Static") == (0, 0)
    one, two = brokers.addresses["broker1"], brokers.addresses["broker2"]
    text, code = run("-b", one, "-t", "Static", "-p", "4")
    assert (text, code) == (
        "replispec: Static is a static topic, which all brokers have alike: -c is needed\n",
        1,
    )
    text, code = run("-c", CLUSTER, "-t", "Static", "-p", "4")
    lines = [f"update topic perm from 6 to 4 in {each} success.\n" for each in (one, two)]
    assert (text, code) == ("".join(lines), 0)
    assert [sent(brokers, 1, "Static", queue)[0] for queue in (0, 1)] == [FORBIDDEN, FORBIDDEN]
    after: TopicAtBrokers = brokers.carried_out(static_topics.known(NAMES, "Static"))
    assert after.topic.epoch > made.topic.epoch
    assert {name: each.chains for name, each in after.topic.parts.items()} == {
        name: each.chains for name, each in made.topic.parts.items()
    }
    assert run("-c", CLUSTER, "-t", "Static", "-p", "6")[1] == 0
    assert sent(brokers, 1, "Static") == (0, 1)


def test_plain_topics_are_closed_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = OwnBrokers(2)
    run = permitting(brokers, monkeypatch)
    one = brokers.addresses["broker1"]
    brokers.carried_out(updated(NAMES, TopicWanted("Plain", 3, 5, 6), cluster=None, broker=one))
    assert run("-c", CLUSTER, "-t", "Plain", "-p", "2") == (
        f"update topic perm from 6 to 2 in {one} success.\n",
        0,
    )
    assert sent(brokers, 1, "Plain", 4)[0] == 0
    assert brokers.pull(one, 0, topic="Plain", queue=0)[0] == FORBIDDEN
    assert run("-c", CLUSTER, "-t", "Nope", "-p", "2") == (f"replispec: no broker of {CLUSTER} has Nope\n", 1)
