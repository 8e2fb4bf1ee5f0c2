"""A whole cluster whose controllers come and go while everything else goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import replispec.controller.rocketmq.process
from replispec.controller.rocketmq.node import ControllerNode
from replispec.runtime.configuration import parse
from replispec.runtime.rocketmq.remoting import Outcome
from replispec.runtime.rocketmq.remoting.calls import Failure
from replispec.runtime.sim import Rng
from replispec.runtime.storage import Storage
from replispec.runtime.world import Member
from replispec.wire.raft.options import MemberOptions
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.constants import GROUP_QUESTIONS_VERSION as VERSION
from replispec.wire.rocketmq.controller import AddGroupMemberRequest, RemoveGroupMemberRequest
from replispec.wire.rocketmq.parameters import ROLES
from tests.sim.asker import AGAIN_MS, Asker, Question
from tests.sim.cluster import CONTROLLER, MORE_CONTROLLERS, Cluster, address, properties
from tests.sim.controller_script import question
from tests.sim.settings import PLAIN

NEW = {"controller-4": ("n3", "127.0.0.5:9878"), "controller-5": ("n4", "127.0.0.6:9878")}
FIRST_MS = 2_000
LEFT = {"n2", "n3", "n4"}
SHORT_RECORDS = 12


@dataclass
class Operator(Asker):
    """Has one member after the other join and leave, whoever leads, until each is granted."""

    addresses: tuple[str, ...] = ()

    def _answered(self, outcome: Outcome, now_ms: int) -> None:
        if isinstance(outcome, Failure) or outcome.header.code != ResponseCode.SUCCESS:
            place = self.addresses.index(self.address)
            self.address = self.addresses[(place + 1) % len(self.addresses)]
            super()._answered(Failure("again", True), now_ms)
            self._next_ms = now_ms + AGAIN_MS
        else:
            super()._answered(outcome, now_ms)


def joins(member: str, at: str) -> Question:
    """30022."""
    return question(RequestCode.CONTROLLER_ADD_MEMBER, AddGroupMemberRequest(VERSION, member, at))


def leaves(member: str) -> Question:
    """30023."""
    return question(RequestCode.CONTROLLER_REMOVE_MEMBER, RemoveGroupMemberRequest(VERSION, member))


class Changing:
    """To be handed to `run`: two controllers join, and two of the first leave."""

    def prepare(self, cluster: Cluster) -> None:
        """Before anything runs."""
        self._cluster = cluster
        world, nemesis = cluster.world, cluster.nemesis
        settings = cluster.settings
        rng = world.rng.fork()
        for name in MORE_CONTROLLERS:
            of = dict(properties(name, settings))
            host = address(name).rpartition(":")[0]
            process = world.processes.pop(name)
            world.add(name, host, self._maker(of, rng.fork())).loses_power = process.loses_power
        for name, (member, at) in NEW.items():
            of = dict(properties(CONTROLLER, PLAIN)) | {
                "controllerDLegerPeers": f"{member}-{at}",
                "controllerDLegerSelfId": member,
                "controllerJoin": ";".join(map(address, MORE_CONTROLLERS)),
                "listenPort": 9878,
                "bindAddress": at.rpartition(":")[0],
            }
            world.add(name, at.rpartition(":")[0], self._maker(of, rng.fork()))
            world.after(1_000_000, lambda name=name: world.start(name))  # type: ignore[misc]
        nemesis._controllers = [*nemesis._controllers, *NEW]
        nemesis._servers = [*nemesis._servers, *NEW]
        everybody = (*map(address, MORE_CONTROLLERS), *(at for _, at in NEW.values()))
        cluster.client._controllers = everybody
        cluster.joining = [at for _, at in NEW.values()]
        (first, second) = NEW.values()
        self.operator = Operator(
            everybody[0],
            [joins(*first), leaves("n0"), joins(*second), leaves("n1")],
            addresses=everybody,
        )
        world.add("operator", "127.0.0.41", lambda _: [Member("operator", self.operator)])
        world.after(FIRST_MS * 1_000, lambda: world.start("operator"))

    def _maker(self, of: dict[str, object], rng: Rng) -> Callable[[Storage], Sequence[Member]]:
        options = parse("".join(f"{key}={value}\n" for key, value in of.items()), ROLES["controller"]).options

        def make(storage: Storage) -> list[Member]:
            return [
                replispec.controller.rocketmq.process.controller(
                    options,
                    storage,
                    rng.bits(),
                    ends_process=True,
                    snapshot_records=SHORT_RECORDS,
                    member_options=MemberOptions(snapshot_keeps_entries=2, snapshot_part_bytes=500),
                )
            ]

        return make

    def wrong(self) -> list[str]:
        """What is not as it was asked for in the end."""
        found = []
        if not self.operator.is_done:
            found.append(f"only {len(self.operator.answers)} changes were granted")
        for name in (*MORE_CONTROLLERS, *NEW):
            process = self._cluster.world.processes[name]
            is_left = "was removed from the group" in (process.failure or "")
            if is_left == (name in (*MORE_CONTROLLERS[2:], *NEW)):
                found.append(f"{name}: {process.failure}")
            for node in process.nodes:
                assert isinstance(node, ControllerNode)
                known = node._log.member
                members = {} if known is None else known.members
                if not is_left and {each for each, (_, votes, _) in members.items() if votes} != LEFT:
                    found.append(f"{name} takes {members} for the group")
        return found
