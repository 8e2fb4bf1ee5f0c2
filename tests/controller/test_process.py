"""From a properties file to the nodes of a process."""

from __future__ import annotations

import pytest

from replispec.controller.rocketmq.process import LOG_NAME
from replispec.controller.rocketmq.process import members as controller_members
from replispec.nameserver.rocketmq.process import members as name_server_members
from replispec.runtime.configuration import ConfigurationError, parse
from replispec.runtime.sim import Disk, Rng, SimulatedStorage
from replispec.runtime.world import Member, Received
from replispec.wire.rocketmq.broker import GetRouteInfoRequest
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.controller import GetMetadataResponse, Properties
from replispec.wire.rocketmq.parameters import CONTROLLER, NAMESERVER
from tests.controller import conversation


def made(text: str, role: str = "controller", disk: Disk | None = None) -> list[Member]:
    """The members of a process with this file."""
    storage = SimulatedStorage(disk or Disk(Rng(1)))
    if role == "nameserver":
        return list(name_server_members(parse(text, NAMESERVER).options, storage, 1))
    return list(controller_members(parse(text, CONTROLLER).options, storage, 1))


def listeners(text: str, role: str = "controller") -> list[tuple[str, str]]:
    """Where the nodes of a process listen."""
    return [(each.role, at) for each in made(text, role) for at in each.node.listeners.values()]


def talk(member: Member) -> conversation.Talk:
    """A talk with one of the members, started."""
    return conversation.Talk(member.node, next(iter(member.node.listeners)), stores=member.stores).start()


def test_a_controller_listens_where_it_is_told() -> None:
    assert listeners("") == [("controller", "127.0.0.1:9878")]
    assert listeners("bindAddress=127.0.0.3\nlistenPort=5\n") == [("controller", "127.0.0.3:5")]
    assert listeners("bindAddress=::1\nlistenPort=5\n") == [("controller", "[::1]:5")]
    both = "listenPort=5\ncontrollerDLegerPeers=n7-127.0.0.1:6\ncontrollerDLegerSelfId=n7\n"
    assert listeners(both) == [("controller", "127.0.0.1:6")]


def test_a_name_server_has_a_controller_on_a_port_of_its_own_when_it_is_told_so() -> None:
    assert listeners("", "nameserver") == [("nameserver", "127.0.0.1:9876")]
    text = "enableControllerInNamesrv=true\ncontrollerDLegerPeers=n0-127.0.0.1:9\n"
    assert listeners(text, "nameserver") == [("nameserver", "127.0.0.1:9876"), ("controller", "127.0.0.1:9")]


@pytest.mark.parametrize("failing", ["records", "append"])
def test_without_its_controller_a_name_server_still_tells_routes(failing: str) -> None:
    text = "enableControllerInNamesrv=true\ncontrollerDLegerPeers=n0-127.0.0.1:9\n"
    disk = Disk(Rng(1))
    name_server, controller = made(text, "nameserver", disk)
    broken = (
        talk(controller)
        if failing == "append"
        else conversation.Talk(controller.node, "controller", stores=controller.stores)
    )
    before = broken.connect() if failing == "append" else None
    disk.plan = lambda what: "broken" if what.startswith(failing) else None
    if before is None:
        broken.start()
    else:
        data = broken.frame(RequestCode.CONTROLLER_APPLY_BROKER_ID, conversation.application(1))
        broken.give(Received(before, data, broken.now_ms))
    after = broken.connect()
    assert broken.halted() is None
    assert "controller ended, its process goes on" in broken.noted()
    assert broken.closed() == [each for each in (before, after) if each is not None]
    assert controller.node.deadline_ms() is None
    asked = talk(name_server)
    answer = asked.ask(asked.connect(), RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequest("TopicA"))
    assert answer.header.code == ResponseCode.TOPIC_NOT_EXIST


@pytest.mark.parametrize(
    ("text", "role", "parameter"),
    [
        ("enableControllerInNamesrv=true\n", "nameserver", "controllerDLegerPeers"),
        ("controllerDLegerPeers=n1-127.0.0.1:6\n", "controller", "controllerDLegerSelfId"),
        ("controllerDLegerPeers=n0-127.0.0.1:6;n1-127.0.0.1:7\n", "controller", "controllerDLegerPeers"),
    ],
)
def test_what_does_not_fit_together_is_refused_by_name(text: str, role: str, parameter: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        made(text, role)
    assert caught.value.name == parameter


def test_the_log_lies_in_the_controllers_folder() -> None:
    for text, folder in (("", "store"), ("storePathRootDir=a\n", "a"), ("controllerStorePath=b\n", "b")):
        disk = Disk(Rng(1))
        talk(made(text, disk=disk)[0])
        assert list(disk.journals) == [f"{folder}/{LOG_NAME}"]


def test_what_is_configured_is_what_is_told() -> None:
    text = "controllerDLegerGroup=g\ncontrollerDLegerPeers=n3-127.0.0.1:6\ncontrollerDLegerSelfId=n3\n"
    asked = talk(made(text + "scanNotActiveBrokerInterval=100\n")[0])
    connection = asked.connect()
    answer = asked.ask(connection, RequestCode.CONTROLLER_GET_METADATA_INFO)
    header = GetMetadataResponse.from_ext_fields(answer.header.ext_fields or {})
    assert (header.group, header.controller_leader_id) == ("g", "n3")
    assert header.peers == "n3:127.0.0.1:6;"
    shown = Properties.decode(asked.ask(connection, RequestCode.GET_CONTROLLER_CONFIG).body)
    assert ("scanNotActiveBrokerInterval", "100") in {(each.name, each.value) for each in shown.properties}
    for name in ("configStorePath", "storePathRootDir", "listenPort", "configBlackList"):
        answer = asked.ask(connection, RequestCode.UPDATE_CONTROLLER_CONFIG, body=f"{name}=x\n".encode())
        assert answer.header.code == ResponseCode.NO_PERMISSION
    assert asked.node.deadline_ms() == asked.now_ms + 100
