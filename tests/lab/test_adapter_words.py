"""The lab's adapter, and the word after a subject's name: brokers that are masters without a controller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from lab.cluster import Cluster, Settings
from lab.errors import UsageError
from lab.rocketmq.adapter import REMOTING, REPLICATION, UNCONTROLLED, LabPrograms
from lab.rocketmq.apache import Apache
from lab.rocketmq.roles import STATIC_TOPIC
from replispec.adapter.v1.messages import Role, Start


class Noting(Apache):
    """Starts nothing, and notes with what it would have been configured."""

    def __init__(self) -> None:
        super().__init__("5.4.0")
        self.noted: Settings = {}

    def command(self, cluster: Cluster, role: str, name: str, settings: Settings) -> Sequence[str]:  # noqa: ARG002
        self.noted = dict(settings)
        return ["true"]


def configured(role: int, words: Sequence[str], folder: Path) -> Mapping[str, object]:
    subject = Noting()
    start = Start(
        role=Role(role), broker_name="set", controllers=["127.0.0.1:9"], name_servers=["127.0.0.1:8"]
    )
    LabPrograms(subject, words).command(start, {REMOTING: 10911, REPLICATION: 10912}, folder)
    return subject.noted


def test_a_broker_is_master_without_a_controller_when_that_is_asked_for(tmp_path: Path) -> None:
    found = configured(Role.BROKER, [UNCONTROLLED], tmp_path)
    assert (found["enableControllerMode"], found["brokerId"], found["brokerName"]) == ("false", 0, "set")
    assert found["namesrvAddr"] == "127.0.0.1:8"


def test_a_broker_has_its_controller_without_the_word(tmp_path: Path) -> None:
    found = configured(Role.BROKER, [], tmp_path)
    assert (found["enableControllerMode"], found["controllerAddr"]) == ("true", "127.0.0.1:9")
    assert "brokerId" not in found


def test_the_word_changes_nothing_of_a_name_server(tmp_path: Path) -> None:
    assert "enableControllerMode" not in configured(Role.NAME_SERVER, [UNCONTROLLED], tmp_path)


def test_another_word_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="'alone' is not uncontrolled"):
        LabPrograms(Noting(), ["alone"])


def test_static_topics_alone_are_judged_at_brokers_without_a_controller() -> None:
    subject = Apache("5.4.0")
    assert STATIC_TOPIC in subject.adapted
    assert [kind for kind in subject.adapted if UNCONTROLLED in subject.adapter(kind)] == [STATIC_TOPIC]
