"""`python -m lab.rocketmq.administration`: what mqadmin prints of a cluster, with the answers it is made of.

Two brokers with a topic and a consumer group, ours or Apache's. Every question that mqadmin's commands ask
is asked here, too, and its answer kept; the tests of the administrator make the same text of the same
answers. What changes a cluster comes last, and its answers are those of a change of the same kind.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lab.cluster import BROKER_NAME, CLUSTER_NAME, Cluster
from lab.errors import LabError
from lab.family import Story
from lab.interop.measured import Measured
from lab.rocketmq import questions, waiting
from lab.rocketmq.apache import Apache
from lab.rocketmq.interop.stage import TOPIC, Stage
from lab.rocketmq.interop.tools import Tools
from lab.rocketmq.peer import Peer
from replispec.runtime.primitives.headers import Header
from replispec.wire.rocketmq.broker import GetRouteInfoRequest
from replispec.wire.rocketmq.client import (
    GetConsumerConnectionsRequest,
    GetConsumerListRequest,
    GetConsumeStatsRequest,
    GetMaxOffsetRequest,
    GetMinOffsetRequest,
    GetTopicConfigRequest,
    GetTopicStatsRequest,
    ResetOffsetRequest,
)
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.controller import BrokerNames, ElectMasterRequest

RELEASE = "5.4.0"
GROUP = "lab-group"
MESSAGES = 20
BROKERS = ("broker-1", "broker-2")
# What stands for the folder of the cluster in what is kept.
FOLDER = "/cluster"
CHANGED = ("enableElectUncleanMaster", "false")


@dataclass(slots=True)
class Recording:
    """What was asked and answered, and what mqadmin printed, by command."""

    answers: list[dict[str, object]] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)

    def ask(self, address: str, code: RequestCode, header: Header | None = None, body: bytes = b"") -> None:
        """Ask once, and keep it."""
        host, _, port = address.rpartition(":")
        with Peer(host, int(port)) as peer:
            answer = peer.ask(code, header, body)
        said = answer.header
        self.answers.append(
            {
                "address": address,
                "request": code.name,
                "fields": header.to_ext_fields() if header is not None else {},
                "body": body.decode(),
                "code": said.code,
                "remark": said.remark,
                "answer_fields": said.ext_fields or {},
                "answer": answer.body.decode(),
            }
        )


def record(folder: Path, *, ours: bool, story: Story) -> Recording:
    """Play a cluster and keep what is said of it. Raises LabError."""
    Cluster.remove_earlier(folder)
    with Cluster(folder) as cluster:
        stage = Stage(cluster, Tools(cluster, Apache(RELEASE)), Measured("administration"))
        stage.start_coordinator(ours=ours)
        for name in BROKERS:
            stage.start_broker(name, ours=ours)
            waiting.wait_master(cluster)
        waiting.wait_in_sync(cluster, (1, 2))
        stage.route_known()
        stage.produce(0, MESSAGES)
        recording = Recording()
        with stage.tools.client_running("push", stage.nameserver, TOPIC, GROUP) as consumer:
            cluster.until(lambda: len(consumer.lines()) > MESSAGES or None, "a consumer that has read")
            cluster.until(lambda: _has_said(stage), "a group that has said how far it has read")
            story.tell("a cluster, a topic, a group that has read it")
            _recorded(recording, stage, dict(_looking(stage)))
            _questions(recording, stage)
        _moved(recording, stage)
        _recorded(recording, stage, dict(_changing(stage)))
        _elected(recording, stage)
    return recording


def _recorded(recording: Recording, stage: Stage, commands: dict[str, Sequence[str]]) -> None:
    texts = stage.tools.mqadmins(list(commands.values()), nameserver=stage.nameserver)
    if len(texts) != len(commands):
        raise LabError(f"mqadmin printed {len(texts)} texts for {len(commands)} commands")
    recording.texts |= dict(zip(map(" ".join, commands.values()), texts, strict=True))


def _looking(stage: Stage) -> Iterator[tuple[str, Sequence[str]]]:
    controller = stage.cluster.address("controller")
    brokers = [stage.cluster.address(name) for name in BROKERS]
    lines: list[Sequence[str]] = [
        ("getSyncStateSet", "-a", controller, "-b", BROKER_NAME),
        ("getSyncStateSet", "-a", controller, "-c", CLUSTER_NAME),
        ("getBrokerEpoch", "-b", BROKER_NAME),
        ("getBrokerEpoch", "-c", CLUSTER_NAME),
        ("getControllerMetaData", "-a", controller),
        ("getControllerConfig", "-a", controller),
        ("haStatus", "-b", brokers[0]),
        ("haStatus", "-b", brokers[1]),
        ("haStatus", "-c", CLUSTER_NAME),
        ("clusterList",),
        ("clusterList", "-m"),
        ("brokerStatus", "-b", brokers[0]),
        ("brokerStatus", "-c", CLUSTER_NAME),
        ("topicRoute", "-t", TOPIC),
        ("topicRoute", "-t", TOPIC, "-l"),
        ("topicStatus", "-t", TOPIC),
        ("consumerProgress",),
        ("consumerProgress", "-g", GROUP),
        ("consumerProgress", "-g", GROUP, "-t", TOPIC),
    ]
    return ((" ".join(line), line) for line in lines)


def _changing(stage: Stage) -> Iterator[tuple[str, Sequence[str]]]:
    controller = stage.cluster.address("controller")
    set_of = ("-bn", BROKER_NAME, "-c", CLUSTER_NAME)
    lines: list[Sequence[str]] = [
        ("updateControllerConfig", "-a", controller, "-k", CHANGED[0], "-v", CHANGED[1]),
        ("resetOffsetByTime", "-g", GROUP, "-t", TOPIC, "-s", "0"),
        ("resetOffsetByTime", "-g", GROUP, "-t", TOPIC, "-s", "-1"),
        ("electMaster", "-a", controller, "-b", "2", *set_of),
    ]
    return ((" ".join(line), line) for line in lines)


def _questions(recording: Recording, stage: Stage) -> None:
    controller, nameserver = stage.cluster.address("controller"), stage.nameserver
    recording.ask(controller, RequestCode.CONTROLLER_GET_METADATA_INFO)
    names = BrokerNames(names=[BROKER_NAME]).encode()
    recording.ask(controller, RequestCode.CONTROLLER_GET_SYNC_STATE_DATA, body=names)
    recording.ask(controller, RequestCode.GET_CONTROLLER_CONFIG)
    recording.ask(nameserver, RequestCode.GET_BROKER_CLUSTER_INFO)
    recording.ask(nameserver, RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
    for topic in (TOPIC, f"%RETRY%{GROUP}"):
        recording.ask(nameserver, RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequest(topic=topic))
    retries = f"%RETRY%{GROUP}"
    for name in BROKERS:
        address = stage.cluster.address(name)
        for topic in (TOPIC, retries):
            stats = GetConsumeStatsRequest(consumer_group=GROUP, topic=topic)
            recording.ask(address, RequestCode.GET_TOPIC_STATS_INFO, GetTopicStatsRequest(topic=topic))
            recording.ask(address, RequestCode.GET_CONSUME_STATS, stats)
            recording.ask(address, RequestCode.GET_TOPIC_CONFIG, GetTopicConfigRequest(topic=topic))
            for queue in range(questions.QUEUES):
                recording.ask(address, RequestCode.GET_MAX_OFFSET, GetMaxOffsetRequest(topic, queue))
                recording.ask(address, RequestCode.GET_MIN_OFFSET, GetMinOffsetRequest(topic, queue))
        of_group = GetConsumeStatsRequest(consumer_group=GROUP)
        recording.ask(address, RequestCode.GET_CONSUME_STATS, of_group)
        clients = GetConsumerConnectionsRequest(consumer_group=GROUP)
        recording.ask(address, RequestCode.GET_CONSUMER_CONNECTION_LIST, clients)
        recording.ask(address, RequestCode.GET_CONSUMER_LIST_BY_GROUP, GetConsumerListRequest(GROUP))
        recording.ask(address, RequestCode.GET_ALL_CONSUMER_OFFSET)
        recording.ask(address, RequestCode.GET_BROKER_RUNTIME_INFO)
        recording.ask(address, RequestCode.GET_BROKER_HA_STATUS)
        recording.ask(address, RequestCode.GET_BROKER_EPOCH_CACHE)


def _moved(recording: Recording, stage: Stage) -> None:
    """What the master answers to administrators who have a group read on from its beginning or end."""
    for at_ms in (0, -1):
        asked = ResetOffsetRequest(
            topic=TOPIC, group=GROUP, queue_id=-1, offset=-1, timestamp=at_ms, is_force=True
        )
        master = stage.cluster.address(BROKERS[0])
        recording.ask(master, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, asked)


def _has_said(stage: Stage) -> bool | None:
    """Whether the group has said how far it has read its retries, too, which comes some seconds later."""
    host, _, port = stage.cluster.address(BROKERS[0]).rpartition(":")
    with Peer(host, int(port)) as peer:
        answer = peer.ask(RequestCode.GET_ALL_CONSUMER_OFFSET)
    return f'"%RETRY%{GROUP}@{GROUP}"'.encode() in answer.body or None


def _elected(recording: Recording, stage: Stage) -> None:
    """What a controller answers to the next election of the kind of which mqadmin printed one."""
    cluster = stage.cluster
    waiting.wait_in_sync(cluster, (1, 2))
    asked = ElectMasterRequest(
        cluster_name=CLUSTER_NAME, broker_name=BROKER_NAME, broker_id=1, designate_elect=True
    )
    cluster.until(lambda: questions.master(cluster.port("controller"), BROKER_NAME), "a master")
    recording.ask(cluster.address("controller"), RequestCode.CONTROLLER_ELECT_MASTER, asked)


def main() -> int:
    """Exit code 0: recorded; 1: not, and the reason is said."""
    parser = argparse.ArgumentParser(prog="python -m lab.rocketmq.administration", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("tests/administrator/recorded"))
    parser.add_argument("--work", type=Path, default=Path("out/administration"), help="the clusters' folder")
    parser.add_argument("whose", nargs="*", choices=("replispec", "apache", []), default=[])
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    story = Story()
    for whose in arguments.whose or ("replispec", "apache"):
        try:
            found = record(arguments.work / whose, ours=whose == "replispec", story=story)
        except LabError as error:
            print(f"administration: {error}", file=sys.stderr)
            return 1
        name = whose if whose == "replispec" else f"{whose}-{RELEASE}"
        told = {"at_ms": time.time_ns() // 1_000_000, "texts": found.texts, "answers": found.answers}
        text = json.dumps(told, indent=1).replace(str((arguments.work / whose).absolute()), FOLDER)
        (arguments.out / f"{name}.json").write_text(text + "\n")
        story.tell(f"{name}: {len(found.texts)} texts of mqadmin, {len(found.answers)} answers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
