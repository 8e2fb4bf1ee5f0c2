"""Real processes on a real disk that is full, and has room again: refused, nothing lost, and on it goes."""

from __future__ import annotations

import json
import resource
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from lab.rocketmq.peer import Peer
from lab.rocketmq.questions import Sender
from replispec.wire.rocketmq.broker import (
    GetRouteInfoRequest,
    RegisterBrokerBody,
    RegisterBrokerRequest,
    TopicConfig,
    TopicConfigTable,
)
from replispec.wire.rocketmq.client import GetMaxOffsetRequest, GetMaxOffsetResponse
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.controller import (
    ApplyBrokerIdRequest,
    GetNextBrokerIdRequest,
    GetNextBrokerIdResponse,
)
from tests.full_disk.small_disk import Running, SmallDisk, eventually, small_disk

CLUSTER, SET, TOPIC = "c", "set", "Topic"
LOOPBACK = "127.0.0.1"
FILE_BYTES = 512 * 1024
BODY = b"x" * 16_000
TRIES_MAX = 2_000


def apply(peer: Peer, number: int) -> int:
    """The code that a broker of its own set gets for its application; always the same application."""
    name = f"set-{number}"
    request = ApplyBrokerIdRequest(CLUSTER, name, 1, f"{LOOPBACK}:{number};1")
    return peer.ask(RequestCode.CONTROLLER_APPLY_BROKER_ID, request).header.code


def next_id(peer: Peer, number: int) -> int | None:
    """Which id is free in the set of this number."""
    answer = peer.ask(
        RequestCode.CONTROLLER_GET_NEXT_BROKER_ID, GetNextBrokerIdRequest(CLUSTER, f"set-{number}")
    )
    assert answer.header.code == ResponseCode.SUCCESS
    return GetNextBrokerIdResponse.from_ext_fields(answer.header.ext_fields or {}).next_broker_id


def refused_from(peer: Peer) -> int:
    """The number of the first application that the controller has no room for."""
    for number in range(1, TRIES_MAX):
        code = apply(peer, number)
        if code != ResponseCode.SUCCESS:
            assert code == ResponseCode.SYSTEM_ERROR
            return number
    raise AssertionError("the disk never became full")


def test_a_controller_refuses_changes_answers_questions_and_goes_on(tmp_path: Path) -> None:
    with small_disk(tmp_path, 4) as disk:
        settings = {"storePathRootDir": tmp_path}
        controller = disk.start("controller", **settings)
        with Peer(LOOPBACK, controller.port("controller", "controller")) as peer:
            assert apply(peer, 0) == ResponseCode.SUCCESS
            disk.fill()
            refused = refused_from(peer)
            assert apply(peer, refused) == ResponseCode.SYSTEM_ERROR
            assert [next_id(peer, number) for number in (0, refused - 1, refused)] == [2, 2, 1]
            disk.free()
            assert apply(peer, refused) == ResponseCode.SUCCESS
        controller.kill()
        controller = disk.start("controller", **settings)
        with Peer(LOOPBACK, controller.port("controller", "controller")) as peer:
            assert {next_id(peer, number) for number in range(refused + 1)} == {2}
            assert {apply(peer, number) for number in range(refused + 1)} == {ResponseCode.SUCCESS}


def test_a_controller_that_starts_on_a_full_disk_answers_and_goes_on(tmp_path: Path) -> None:
    with small_disk(tmp_path, 4) as disk:
        settings = {"storePathRootDir": tmp_path}
        controller = disk.start("controller", **settings)
        with Peer(LOOPBACK, controller.port("controller", "controller")) as peer:
            disk.fill()
            refused = refused_from(peer)
        controller.kill()
        controller = disk.start("controller", **settings)
        with Peer(LOOPBACK, controller.port("controller", "controller")) as peer:
            assert next_id(peer, 1) == (2 if refused > 1 else 1)
            assert apply(peer, refused) == ResponseCode.SYSTEM_ERROR
            disk.free()
            eventually(lambda: apply(peer, refused) == ResponseCode.SUCCESS, "room for a record")


def route_code(peer: Peer, topic: str) -> int:
    """What a name server answers to who asks for a topic."""
    return peer.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequest(topic)).header.code


def registered_as(peer: Peer, number: int) -> int:
    """What a name server answers to a broker that registers with one topic."""
    config = TopicConfig(topic_name=f"Topic-{number}", read_queue_nums=1, write_queue_nums=1, perm=6)
    table = TopicConfigTable(topic_config_table={f"Topic-{number}": config})
    request = RegisterBrokerRequest(
        broker_name=f"set-{number}",
        broker_addr=f"{LOOPBACK}:{number}",
        cluster_name=CLUSTER,
        ha_server_addr="",
        broker_id=0,
        compressed=False,
    )
    body = RegisterBrokerBody(topic_config_serialize_wrapper=table, filter_server_list=[]).encode()
    return peer.ask(RequestCode.REGISTER_BROKER, request, body).header.code


def test_a_name_server_tells_routes_while_its_log_and_its_controller_have_no_room(tmp_path: Path) -> None:
    with small_disk(tmp_path, 4) as disk:
        server = disk.start(
            "nameserver",
            controllerStorePath=tmp_path,
            enableControllerInNamesrv="true",
            controllerDLegerPeers=f"n0-{LOOPBACK}:0",
        )
        with (
            Peer(LOOPBACK, server.port("nameserver", "nameserver")) as peer,
            Peer(LOOPBACK, server.port("controller", "controller")) as controller,
        ):
            assert registered_as(peer, 0) == ResponseCode.SUCCESS
            disk.fill()
            refused = refused_from(controller)
            for number in range(1, 100):
                assert registered_as(peer, number) == ResponseCode.SUCCESS
            assert {route_code(peer, f"Topic-{number}") for number in range(100)} == {ResponseCode.SUCCESS}
            disk.free()
            assert apply(controller, refused) == ResponseCode.SUCCESS
            assert registered_as(peer, 100) == ResponseCode.SUCCESS
            assert server.noted("lines that could not be written")


class BrokerSet:
    """A controller, a name server, a broker and perhaps a learner; one of the latter is on the small disk."""

    def __init__(self, disk: SmallDisk, elsewhere: Path, *, small: str) -> None:
        self._disk = disk
        self._folders = {
            role: disk.place if role == small else elsewhere / role for role in ("broker", "learner")
        }
        controller = disk.start("controller", storePathRootDir=elsewhere / "controller")
        name_server = disk.start("nameserver")
        self._common: dict[str, object] = {
            "brokerClusterName": CLUSTER,
            "brokerName": SET,
            "controllerAddr": controller.addresses["controller"]["controller"],
            "namesrvAddr": name_server.addresses["nameserver"]["nameserver"],
            "mappedFileSizeCommitLog": FILE_BYTES,
            # Up to the last byte: what is said before is another test's.
            "diskSpaceWarningLevelRatio": 100,
            "cleanFileForciblyEnable": "false",
            "haReconnectInterval": 200,
        }

    def start_broker(self, **more: object) -> Running:
        """The broker runs."""
        role = {"enableControllerMode": "true", "flushDiskType": "SYNC_FLUSH", **more}
        settings = self._common | role | {"storePathRootDir": self._folders["broker"]}
        return self._disk.start("broker", **settings)

    def start_learner(self) -> Path:
        """The learner runs; the file that it exports into, as others see it."""
        folder = self._folders["learner"]
        settings = {"asyncLearner": "true", "storePathRootDir": folder, "exportPath": folder / "out.jsonl"}
        self._disk.start("learner", **self._common, **settings)
        return self._disk.outside / "out.jsonl"


def sent(broker: Running, number: int, topic: str = TOPIC) -> int:
    """The code that a message with this number gets, each time on a connection of its own."""
    with Peer(LOOPBACK, broker.port("broker", "main")) as peer:
        return Sender(peer, topic).send(b"%d " % number + BODY)[0]


def kept(broker: Running) -> int:
    """How many messages the broker shows to consumers."""
    with Peer(LOOPBACK, broker.port("broker", "main")) as peer:
        answer = peer.ask(RequestCode.GET_MAX_OFFSET, GetMaxOffsetRequest(queue_id=0, topic=TOPIC))
    return GetMaxOffsetResponse.from_ext_fields(answer.header.ext_fields or {}).offset or 0


def test_a_broker_refuses_messages_keeps_what_it_acknowledged_and_goes_on(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with small_disk(tmp_path, 4) as disk:
        set_ = BrokerSet(disk, tmp_path_factory.mktemp("elsewhere"), small="broker")
        broker = set_.start_broker()
        eventually(lambda: sent(broker, 0) == ResponseCode.SUCCESS, "a master")
        disk.fill()
        codes: list[int] = []
        while len(codes) < TRIES_MAX and ResponseCode.SERVICE_NOT_AVAILABLE not in codes:
            codes.append(sent(broker, 1 + len(codes)))
        assert set(codes[:-1]) == {ResponseCode.SUCCESS}
        assert codes[-1] == ResponseCode.SERVICE_NOT_AVAILABLE
        assert sent(broker, 0, "Other") == ResponseCode.SERVICE_NOT_AVAILABLE
        acknowledged = len(codes)
        assert kept(broker) == acknowledged
        disk.free()
        eventually(lambda: sent(broker, acknowledged) == ResponseCode.SUCCESS, "room for a message")
        eventually(lambda: sent(broker, 0, "Other") == ResponseCode.SUCCESS, "room for a topic")
        broker.kill()
        again = set_.start_broker()
        eventually(lambda: kept(again) == acknowledged + 1, "what was acknowledged")


def test_a_nearly_full_disk_takes_no_messages_while_all_are_read_until_there_is_room(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with small_disk(tmp_path, 4) as disk:
        set_ = BrokerSet(disk, tmp_path_factory.mktemp("elsewhere"), small="broker")
        broker = set_.start_broker(diskSpaceWarningLevelRatio=90, cleanResourceInterval=50)
        eventually(lambda: sent(broker, 0) == ResponseCode.SUCCESS, "a master")
        disk.fill()
        eventually(lambda: sent(broker, 1) == ResponseCode.SERVICE_NOT_AVAILABLE, "the mark is seen")
        assert broker.noted("the disk is nearly full: no messages are taken")
        assert kept(broker) >= 1
        disk.free()
        eventually(lambda: sent(broker, 2) == ResponseCode.SUCCESS, "room for a message")
        assert broker.noted("the disk has room again: messages are taken")


DESCRIPTORS = 128


def test_peers_that_take_every_descriptor_leave_those_that_messages_need(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with small_disk(tmp_path, 8) as disk, ExitStack() as greedy:
        set_ = BrokerSet(disk, tmp_path_factory.mktemp("elsewhere"), small="broker")
        broker = set_.start_broker()
        eventually(lambda: sent(broker, 0) == ResponseCode.SUCCESS, "a master")
        port = broker.port("broker", "main")
        with Peer(LOOPBACK, port) as good:
            resource.prlimit(broker.process.pid, resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
            for _ in range(2 * DESCRIPTORS):
                greedy.enter_context(socket.create_connection((LOOPBACK, port)))
            eventually(lambda: broker.noted("no connection accepted"), "the last descriptor for peers")
            codes = {Sender(good, TOPIC).send(BODY)[0] for _ in range(2 * FILE_BYTES // len(BODY))}
            assert codes == {ResponseCode.SUCCESS}
            assert Sender(good, "Other").send(BODY)[0] == ResponseCode.SUCCESS
        greedy.close()
        eventually(lambda: sent(broker, 1) == ResponseCode.SUCCESS, "a connection")
        assert broker.process.poll() is None


def test_a_learner_stands_still_and_tells_of_every_message_once_when_there_is_room(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with small_disk(tmp_path, 8) as disk:
        set_ = BrokerSet(disk, tmp_path_factory.mktemp("elsewhere"), small="learner")
        broker = set_.start_broker()
        eventually(lambda: sent(broker, 0) == ResponseCode.SUCCESS, "a master")
        exported = set_.start_learner()

        def numbers() -> list[int]:
            # What follows the last line feed is being written, or had no room.
            lines = exported.read_text().split("\n")[:-1]
            return [int(json.loads(line)["text"].split()[0]) for line in lines]

        eventually(lambda: numbers() == [0], "a first message")
        disk.fill()
        count = 4 * FILE_BYTES // len(BODY)
        for number in range(1, count):
            assert sent(broker, number) == ResponseCode.SUCCESS, "a learner holds nobody up"
        seen = numbers()
        assert seen == list(range(len(seen)))
        assert len(seen) < count
        disk.free()
        eventually(lambda: numbers() == list(range(count)), "every message")
