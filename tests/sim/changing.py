"""A group of controllers whose members come and go: newcomers, and what an administrator asks of it."""

from __future__ import annotations

from functools import partial

from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.sim import Rng
from replispec.wire.rocketmq.codes import RequestCode
from replispec.wire.rocketmq.constants import GROUP_QUESTIONS_VERSION as VERSION
from replispec.wire.rocketmq.controller import (
    AddGroupMemberRequest,
    GetGroupMembersRequest,
    GetGroupMembersResponse,
    GroupMembersInfo,
    KeepSnapshotRequest,
    RemoveGroupMemberRequest,
    TransferLeadRequest,
)
from tests.sim.asker import Question
from tests.sim.controller_script import question
from tests.sim.controllers import PORT, Controllers, hosts, make, properties

CHANGED_MS_MAX = 20_000
MEMBERS = question(RequestCode.CONTROLLER_GET_MEMBERS, GetGroupMembersRequest(VERSION))
SNAPSHOT = question(RequestCode.CONTROLLER_KEEP_SNAPSHOT, KeepSnapshotRequest(VERSION))


def number(name: str) -> str:
    """What the number of a controller is."""
    return name.rpartition("-")[2]


def member(name: str) -> str:
    """The id of a controller."""
    return f"n{number(name)}"


def addition(name: str, address: str = "") -> Question:
    """30022: this one is to join."""
    at = address or f"127.0.0.{number(name)}:{PORT}"
    return question(RequestCode.CONTROLLER_ADD_MEMBER, AddGroupMemberRequest(VERSION, member(name), at))


def removal(name: str) -> Question:
    """30023: this one is to leave."""
    return question(RequestCode.CONTROLLER_REMOVE_MEMBER, RemoveGroupMemberRequest(VERSION, member(name)))


def transfer(name: str) -> Question:
    """30024: this one is to lead."""
    return question(RequestCode.CONTROLLER_TRANSFER_LEAD, TransferLeadRequest(VERSION, member(name)))


def newcomer(name: str, asks: str = "127.0.0.1;127.0.0.2;127.0.0.3") -> dict[str, object]:
    """How a controller is configured that is to join."""
    return properties(name) | {
        "controllerDLegerPeers": f"{member(name)}-127.0.0.{number(name)}:{PORT}",
        "controllerJoin": ";".join(f"{each}:{PORT}" for each in asks.split(";")),
    }


def comes(group: Controllers, name: str, **overrides: object) -> None:
    """Another controller starts, and wants to join."""
    rng = Rng(group.seed * 100 + int(number(name)))
    group.hosts[name] = f"127.0.0.{number(name)}"
    of = newcomer(name) | overrides
    group.world.add(name, group.hosts[name], partial(make, of, rng, short=group.is_short))
    group.world.start(name)


def voters(group: Controllers, name: str) -> set[str]:
    """Who votes, as one of them knows it."""
    known = group.node(name)._log.member
    return set() if known is None else {each for each, (_, votes, _) in known.members.items() if votes}


def are_members(group: Controllers, names: set[str]) -> bool:
    """Whether all of these run, and know that they, and nobody else, vote."""
    wanted = set(map(member, names))
    return names <= set(group.living()) and all(voters(group, each) == wanted for each in names)


def become(group: Controllers, names: set[str]) -> None:
    """Soon these are the group."""
    assert group.world.run_until(lambda: are_members(group, names), at_most_ms=CHANGED_MS_MAX), (
        {each: voters(group, each) for each in group.living()},
        group.notes[-8:],
    )


def said(answer: Command) -> tuple[GetGroupMembersResponse, GroupMembersInfo]:
    """What a controller says of its group."""
    header = GetGroupMembersResponse.from_ext_fields(answer.header.ext_fields or {})
    return header, GroupMembersInfo.decode(answer.body)


FOUNDERS = set(hosts())
