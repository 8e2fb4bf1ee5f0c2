"""A learner gets an id, watches who is master, and never takes the place itself."""

from __future__ import annotations

from replispec.learner.rocketmq.core.watch import Watch
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.membership import Controllers
from replispec.runtime.sim import Disk, Rng, SimulatedStorage
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.controller import GetReplicaInfoResponse, SyncStateSet
from replispec.wire.rocketmq.options import LearnerOptions
from tests.playbook import Answer, Playbook
from tests.runtime.membership.registering import CONTROLLER, Granting

OURS = 1
ASKING = {
    RequestCode.CONTROLLER_GET_METADATA_INFO,
    RequestCode.CONTROLLER_GET_NEXT_BROKER_ID,
    RequestCode.CONTROLLER_APPLY_BROKER_ID,
    RequestCode.CONTROLLER_REGISTER_BROKER,
    RequestCode.CONTROLLER_GET_REPLICA_INFO,
}


class Watching:
    """A learner's watch over a controller that says `told`."""

    def __init__(self, disk: Disk) -> None:
        self.answer: Answer = Answer(ResponseCode.CONTROLLER_BROKER_METADATA_NOT_EXIST)
        self.granting = Granting()
        self.ids: list[int] = []
        self.stood_still: list[int] = []
        files = SimulatedStorage(disk).files("store")
        self.playbook = Playbook({CONTROLLER: self._answered}, files=files)
        self.watch = Watch(
            self.playbook.outbox,
            self.playbook.writes,
            Controllers(self.playbook.calls, [CONTROLLER]),
            files,
            LearnerOptions(broker_cluster_name="C", broker_name="broker-a", controller_addr=(CONTROLLER,)),
            lambda broker_id, _now_ms: self.ids.append(broker_id),
            self.stood_still.append,
        )
        self.playbook >> (lambda now_ms: self.watch.begin("l:1", now_ms))

    def says(self, master: int | None, address: str | None, *members: int) -> None:
        header = GetReplicaInfoResponse(master, address, 3)
        body = SyncStateSet(broker_ids=list(members), sync_state_set_epoch=1).encode()
        self.answer = Answer(ext_fields=header.to_ext_fields(), body=body)
        self.wait(5_000)

    def wait(self, passed_ms: int) -> None:
        for _ in range(passed_ms // 500):
            self.playbook.now_ms += 500
            self.playbook >> self.watch.ticked

    def _answered(self, command: Command) -> Answer | None:
        asks_who = command.header.code == RequestCode.CONTROLLER_GET_REPLICA_INFO
        return self.answer if asks_who else self.granting(command)


def test_a_learner_gets_an_id_once_and_asks_for_no_more_than_it_may() -> None:
    disk = Disk(Rng(1))
    learner = Watching(disk)
    learner.wait(30_000)
    assert learner.ids == [OURS]
    assert set(learner.playbook.codes()) <= ASKING
    again = Watching(disk)
    again.granting.lost = {int(code) for code in ASKING}
    assert again.ids == [OURS], "what is on the disk needs no controller"


def test_only_the_master_that_the_controller_names_is_followed() -> None:
    learner = Watching(Disk(Rng(1)))
    learner.wait(2_000)
    assert learner.watch.may_follow("m:1"), "nobody has said otherwise"
    learner.says(2, "m:1", 2)
    assert learner.watch.may_follow("m:1")
    assert not learner.watch.may_follow("n:1")
    learner.says(None, None)
    assert learner.watch.may_follow("n:1")


def test_a_learner_that_is_named_master_stands_still_until_another_is() -> None:
    learner = Watching(Disk(Rng(1)))
    learner.wait(2_000)
    learner.says(OURS, "l:1", OURS)
    assert not learner.watch.may_follow("l:1")
    assert any("names this learner master" in note.what for note in learner.playbook.notes)
    assert learner.stood_still
    learner.says(2, "m:1", 2)
    assert learner.watch.may_follow("m:1")


def test_an_answer_that_cannot_be_read_costs_a_line() -> None:
    learner = Watching(Disk(Rng(1)))
    learner.wait(2_000)
    learner.answer = Answer(body=b"garbage")
    learner.wait(5_000)
    assert any("cannot be read" in note.what for note in learner.playbook.notes)
