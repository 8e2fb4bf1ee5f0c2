"""A broker takes the role that a controller gives it, and counts with every set that may be the one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from replispec.broker.rocketmq.core.role import Role
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.membership import Controllers
from replispec.runtime.sim import Disk, Rng, SimulatedStorage
from replispec.runtime.storage import StorageFailed
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.controller import AlterSyncStateSetRequest, SyncStateSet
from replispec.wire.rocketmq.machines.broker_role import ReplicaInfoReceived
from replispec.wire.rocketmq.options import BrokerOptions
from tests.playbook import Action, Answer, Playbook

CONTROLLER = "127.0.0.1:9878"
US = 1
US_TWO = frozenset({1, 2})
OPTIONS = BrokerOptions(broker_name="broker-a")
DOUBT_MS = OPTIONS.alteration_doubt_period_ms


class Deciding:
    """A controller that answers 1001 as told: a code, or None for never."""

    def __init__(self) -> None:
        self.code: int | None = ResponseCode.SUCCESS
        self.asked: list[tuple[frozenset[int], int | None, int | None]] = []
        self.before: Callable[[], None] = lambda: None
        self.epochs_behind = 0

    def __call__(self, command: Command) -> Answer | None:
        if command.header.code != RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET:
            return Answer()
        header = AlterSyncStateSetRequest.from_ext_fields(command.header.ext_fields or {})
        wanted = SyncStateSet.decode(command.body)
        members = frozenset(wanted.broker_ids or ())
        self.asked.append((members, header.master_epoch, wanted.sync_state_set_epoch))
        self.before()
        if self.code is None:
            return None
        decided = SyncStateSet(
            broker_ids=sorted(members),
            sync_state_set_epoch=(wanted.sync_state_set_epoch or 0) + 1 - self.epochs_behind,
        )
        return Answer(self.code, body=decided.encode() if self.code == ResponseCode.SUCCESS else b"")


class Broker:
    """Notes what follows from the role."""

    def __init__(self, disk: Disk | None = None) -> None:
        self.received: list[str] = []
        self.gone: set[int] = set()
        self.controller = Deciding()
        self.disk = disk or Disk(Rng(1))
        files = SimulatedStorage(self.disk).files("store")
        self.playbook = Playbook({CONTROLLER: self.controller}, files=files)
        controllers = Controllers(self.playbook.calls, [CONTROLLER])
        controllers.leader = CONTROLLER
        playbook = self.playbook
        self.role = Role(playbook.outbox, playbook.writes, controllers, files, OPTIONS, self)

    def become_master(self, epoch: int, _now_ms: int, *, resumed: bool) -> None:
        self.received.append(f"master of {epoch}" + (" again" if resumed else ""))

    def become_replica(self, address: str, _now_ms: int) -> None:
        self.received.append(f"replica of {address}")

    def set_changed(self, _now_ms: int) -> None:
        self.received.append(f"counts {sorted(self.role.counted)}")

    def check_members(self, _now_ms: int) -> None:
        self.received.append("checks the members")

    def lags(self, broker_id: int) -> bool:
        return broker_id in self.gone

    def may_join(self, broker_id: int) -> bool:
        return broker_id not in self.gone

    def ask_election(self, _now_ms: int) -> None:
        self.received.append("asks for a master")

    def ask_who_is_master(self, _now_ms: int) -> None:
        self.received.append("asks who is master")

    def leave_office(self, _now_ms: int) -> None:
        self.received.append("leaves office")

    def replica_info_received(
        self,
        master: int | None,
        epoch: int,
        members: frozenset[int] = frozenset({1}),
        set_epoch: int = 1,
        *,
        is_answer: bool = False,
        is_elected: bool = False,
    ) -> list[str]:
        address = None if master is None else f"broker {master}"
        return self.does(
            lambda now_ms: self.role.replica_info_received(
                ReplicaInfoReceived(master, address, epoch, members, set_epoch, is_answer, is_elected), now_ms
            )
        )

    def caught_up(self, broker_id: int) -> list[str]:
        return self.does(lambda now_ms: self.role.caught_up(broker_id, now_ms))

    def lagging(self, *broker_ids: int) -> list[str]:
        return self.does(lambda now_ms: self.role.lagging(broker_ids, now_ms))

    def wait(self, passed_ms: int) -> list[str]:
        self.playbook.now_ms += passed_ms
        return self.does(self.role.ticked)

    def does(self, action: Action) -> list[str]:
        before = len(self.received)
        self.playbook >> action
        return self.received[before:]


def fresh(last_epoch: int = 0, disk: Disk | None = None, *, is_sure: bool = True) -> Broker:
    broker = Broker(disk)
    broker.role.identified(US, last_epoch, broker.playbook.now_ms, is_sure=is_sure)
    return broker


def master_of_two() -> Broker:
    broker = fresh()
    broker.replica_info_received(US, 5, US_TWO, 7)
    return broker


def test_a_role_with_a_later_epoch_is_taken_and_others_are_not() -> None:
    broker = fresh()
    assert broker.replica_info_received(2, 3) == ["replica of broker 2"]
    assert broker.replica_info_received(2, 3) == []
    assert broker.replica_info_received(US, 3) == []
    assert broker.replica_info_received(3, 2) == []
    assert broker.replica_info_received(US, 4) == ["master of 4"]
    assert broker.replica_info_received(2, 4) == []
    assert broker.replica_info_received(US, 6) == ["master of 6"]
    assert broker.replica_info_received(2, 7) == ["replica of broker 2"]
    assert broker.replica_info_received(3, 8) == ["replica of broker 3"]


def test_after_a_restart_the_epoch_of_the_log_goes_on_and_older_ones_do_not_count() -> None:
    assert fresh(5).replica_info_received(US, 5) == ["master of 5 again"]
    assert fresh(5).replica_info_received(US, 6) == ["master of 6"]
    assert fresh(5).replica_info_received(US, 4) == []
    assert fresh(5).replica_info_received(2, 4) == []
    assert fresh(5).replica_info_received(2, 5) == ["replica of broker 2"]


def test_who_may_have_lost_what_it_acknowledged_is_master_in_no_epoch_of_before() -> None:
    broker = fresh(last_epoch=3, is_sure=False)
    assert broker.replica_info_received(US, 3) == ["leaves office"]
    # The bytes of this epoch may be what was lost.
    assert broker.replica_info_received(US, 4) == ["leaves office"]
    assert broker.replica_info_received(US, 5, is_elected=True) == ["master of 5"]
    assert fresh(last_epoch=3, is_sure=False).replica_info_received(2, 3) == ["replica of broker 2"]


def test_who_was_told_of_no_master_is_whatever_it_is_told_after_that() -> None:
    broker = fresh(last_epoch=3, is_sure=False)
    assert broker.replica_info_received(None, 5) == ["asks for a master"]
    # A notification that was late: by then there was no master any more.
    assert broker.replica_info_received(US, 4) == []
    assert broker.replica_info_received(US, 6) == ["master of 6"]


def test_without_a_master_an_election_is_asked_for() -> None:
    assert fresh().replica_info_received(None, 0) == ["asks for a master"]
    replica = fresh()
    replica.replica_info_received(2, 3)
    assert replica.replica_info_received(None, 2) == []
    assert replica.replica_info_received(None, 3) == ["asks for a master"]
    assert replica.replica_info_received(None, 4) == ["asks for a master"]
    master = fresh()
    master.replica_info_received(US, 3)
    assert master.replica_info_received(None, 4) == ["asks for a master"]
    assert master.role.is_master, "who is in the set still holds what is acknowledged"


def test_a_replica_that_has_caught_up_is_counted_from_the_moment_it_is_asked_for() -> None:
    broker = fresh()
    broker.replica_info_received(US, 5, frozenset({1}), 7)
    broker.controller.code = None
    assert broker.caught_up(2) == ["counts [1, 2]"]
    assert broker.role.members == {1}
    assert broker.controller.asked == [(US_TWO, 5, 7)]
    assert broker.caught_up(3) == [], "one change at a time"
    assert broker.caught_up(2) == []


def test_a_member_that_leaves_is_counted_until_the_controller_has_decided() -> None:
    broker = master_of_two()
    broker.controller.code = None
    assert broker.lagging(2) == ["counts [1, 2]"]
    assert broker.controller.asked == [(frozenset({1}), 5, 7)]
    assert broker.replica_info_received(US, 5, frozenset({1}), 8) == ["counts [1]"]


def test_the_set_is_what_the_controller_answers() -> None:
    broker = master_of_two()
    assert broker.lagging(2) == ["counts [1, 2]", "counts [1]"]
    assert broker.caught_up(2) == ["counts [1, 2]", "counts [1, 2]"]
    assert broker.controller.asked == [(frozenset({1}), 5, 7), (US_TWO, 5, 8)]
    assert broker.role.members == US_TWO


def test_nobody_is_asked_in_or_out_twice_and_the_master_never() -> None:
    broker = master_of_two()
    assert broker.caught_up(2) == []
    assert broker.lagging(3) == []
    assert broker.lagging(US) == []
    assert broker.controller.asked == []


@pytest.mark.parametrize(
    "code", [ResponseCode.CONTROLLER_NOT_LEADER, ResponseCode.SYSTEM_ERROR, None], ids=str
)
def test_a_request_whose_outcome_is_unknown_is_sent_again_and_counts(code: int | None) -> None:
    broker = fresh()
    broker.replica_info_received(US, 5, frozenset({1}), 7)
    broker.controller.code = code
    broker.caught_up(2)
    broker.wait(3_000)
    assert broker.role.counted == US_TWO
    broker.controller.code = ResponseCode.SUCCESS
    broker.wait(1_000)
    assert len(broker.controller.asked) >= 2
    assert set(broker.controller.asked) == {(US_TWO, 5, 7)}
    assert broker.role.members == US_TWO


def test_what_was_refused_is_asked_for_again_after_a_pause_or_for_another_set() -> None:
    broker = fresh()
    broker.replica_info_received(US, 5, frozenset({1}), 7)
    broker.controller.code = ResponseCode.CONTROLLER_BROKER_NOT_ALIVE
    for _ in range(100):
        broker.caught_up(2)
    assert len(broker.controller.asked) == 1
    broker.wait(OPTIONS.controller_retry_interval_ms)
    broker.caught_up(2)
    assert len(broker.controller.asked) == 2
    broker.replica_info_received(US, 5, frozenset({1, 3}), 8)
    broker.caught_up(2)
    assert len(broker.controller.asked) == 3


def test_who_is_refused_keeps_nobody_else_out() -> None:
    broker = fresh()
    broker.replica_info_received(US, 5, frozenset({1}), 7)
    broker.controller.code = ResponseCode.CONTROLLER_BROKER_NOT_ALIVE
    strangers = range(90, 100)
    for stranger in (*strangers, *strangers):
        broker.caught_up(stranger)
    assert len(broker.controller.asked) == len(strangers)
    broker.controller.code = ResponseCode.SUCCESS
    broker.caught_up(2)
    assert broker.role.members == US_TWO


def test_an_answer_that_is_no_newer_is_not_believed() -> None:
    broker = master_of_two()
    broker.controller.code = None
    broker.lagging(2)
    broker.replica_info_received(US, 5, US_TWO, 9)
    assert broker.role.members == US_TWO
    assert broker.replica_info_received(US, 5, frozenset({1}), 8) == []


def test_who_is_master_no_more_forgets_what_it_asked_for() -> None:
    broker = master_of_two()
    broker.controller.code = None
    broker.lagging(2)
    broker.replica_info_received(2, 6, frozenset({2}), 9)
    assert broker.role.counted == {2}
    assert broker.lagging(2) == []
    assert broker.caught_up(3) == []
    assert broker.wait(3_000) == []


def test_a_replica_learns_newer_sets_of_its_master() -> None:
    broker = fresh()
    broker.replica_info_received(2, 3, frozenset({2}), 1)
    broker.replica_info_received(2, 3, US_TWO, 2)
    broker.replica_info_received(2, 3, frozenset({2}), 1)
    assert broker.role.members == US_TWO


def stands(broker: Broker) -> str:
    """The state of the machine, in one line."""
    known = broker.role.variables
    proposed = f" or {sorted(known.proposed)}" if known.proposed else ""
    doubtful = " in doubt" if known.doubtful else ""
    role = f"{broker.role.state.name} {known.master_epoch}"
    return f"{role}: {sorted(known.members)} of {known.set_epoch}{proposed}{doubtful}"


def test_every_step_of_a_life() -> None:
    broker = fresh(5)
    broker.controller.code = None
    steps: list[tuple[list[str], str]] = []

    def note(received: list[str]) -> None:
        steps.append((received, stands(broker)))

    note(broker.replica_info_received(None, 6))
    note(broker.replica_info_received(2, 4))
    note(broker.replica_info_received(US, 5, frozenset({1}), 7))
    broker.role.identified(US, 9, broker.playbook.now_ms, is_sure=True)
    note(broker.caught_up(2))
    note(broker.replica_info_received(US, 5, frozenset({1}), 7))
    note(broker.replica_info_received(None, 6))
    note(broker.replica_info_received(US, 8, US_TWO, 9))
    note(broker.lagging(2))
    note(broker.replica_info_received(3, 9, frozenset({3}), 1))
    broker.role.identified(US, 9, broker.playbook.now_ms, is_sure=True)
    note(broker.wait(3_000))
    note(broker.replica_info_received(None, 10))
    note(broker.replica_info_received(2, 10, frozenset({2}), 3))
    note(broker.replica_info_received(2, 10, US_TWO, 4))
    note(broker.replica_info_received(3, 10, frozenset({3}), 4))
    note(broker.replica_info_received(US, 12, US_TWO, 5))
    assert steps == [
        (["asks for a master"], "UNDECIDED 5: [] of 0"),
        ([], "UNDECIDED 5: [] of 0"),
        (["master of 5 again"], "MASTER 5: [1] of 7"),
        (["counts [1, 2]"], "MASTER 5: [1] of 7 or [1, 2]"),
        ([], "MASTER 5: [1] of 7 or [1, 2]"),
        (["asks for a master"], "MASTER 5: [1] of 7 or [1, 2]"),
        (["master of 8"], "MASTER 8: [1, 2] of 9"),
        (["counts [1, 2]"], "MASTER 8: [1, 2] of 9 or [1]"),
        (["replica of broker 3"], "REPLICA 9: [3] of 1"),
        ([], "REPLICA 9: [3] of 1"),
        (["asks for a master"], "REPLICA 9: [3] of 1"),
        (["replica of broker 2"], "REPLICA 10: [2] of 3"),
        ([], "REPLICA 10: [1, 2] of 4"),
        ([], "REPLICA 10: [1, 2] of 4"),
        (["master of 12"], "MASTER 12: [1, 2] of 5"),
    ]


def test_a_request_that_is_refused_before_any_other_leaves_the_set_as_it_was() -> None:
    broker = master_of_two()
    broker.controller.code = ResponseCode.CONTROLLER_BROKER_NOT_ALIVE
    assert broker.lagging(2) == ["counts [1, 2]", "counts [1, 2]", "asks who is master"]
    assert stands(broker) == "MASTER 5: [1, 2] of 7"


def test_a_refusal_in_doubt_counts_both_sets_until_another_epoch_of_the_set_is_known() -> None:
    broker = in_doubt()
    broker.replica_info_received(US, 5, frozenset({1}), 7)
    assert stands(broker) == "MASTER 5: [1] of 7 or [1, 2] in doubt"
    broker.replica_info_received(US, 5, US_TWO, 8)
    assert stands(broker) == "MASTER 5: [1, 2] of 8"
    assert broker.wait(DOUBT_MS) == []


def test_a_doubt_ends_by_an_answer_that_was_asked_for_when_no_request_could_be_on_its_way() -> None:
    broker = in_doubt()
    assert broker.wait(DOUBT_MS - 1) == []
    assert broker.wait(1) == ["asks who is master"]
    broker.replica_info_received(US, 5, frozenset({1}), 7)
    assert stands(broker) == "MASTER 5: [1] of 7 or [1, 2] in doubt"
    broker.replica_info_received(US, 5, frozenset({1}), 7, is_answer=True)
    assert stands(broker) == "MASTER 5: [1] of 7"


def test_another_request_puts_the_end_of_a_doubt_off() -> None:
    broker = in_doubt()
    broker.wait(DOUBT_MS - 1)
    broker.replica_info_received(US, 5, frozenset({1}), 8)
    broker.controller.code = None
    broker.caught_up(2)
    assert broker.wait(1) == []


def in_doubt() -> Broker:
    """A master that asked to expand its set; no answer came to the first request, a refusal to the second."""
    broker = fresh()
    broker.replica_info_received(US, 5, frozenset({1}), 7)
    broker.controller.code = ResponseCode.SYSTEM_ERROR
    broker.caught_up(2)
    broker.controller.code = ResponseCode.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED
    assert broker.wait(OPTIONS.controller_retry_interval_ms) == ["counts [1, 2]", "asks who is master"]
    assert stands(broker) == "MASTER 5: [1] of 7 or [1, 2] in doubt"
    return broker


def test_an_answer_with_an_old_epoch_makes_the_master_ask_who_is_in_the_set() -> None:
    broker = fresh()
    broker.replica_info_received(US, 5, frozenset({1}), 7)
    broker.controller.epochs_behind = 2
    assert broker.caught_up(2) == ["counts [1, 2]", "asks who is master"]
    assert stands(broker) == "MASTER 5: [1] of 7 or [1, 2]"


@pytest.mark.parametrize(
    "code", [ResponseCode.SUCCESS, ResponseCode.CONTROLLER_INVALID_MASTER, ResponseCode.SYSTEM_ERROR], ids=str
)
def test_what_comes_after_the_role_was_lost_changes_nothing(code: int) -> None:
    broker = master_of_two()
    broker.controller.code = code
    broker.controller.before = lambda: broker.role.replica_info_received(
        ReplicaInfoReceived(2, "broker 2", 6, US_TWO, 9, is_answer=False, is_elected=False),
        broker.playbook.now_ms,
    )
    broker.lagging(2)
    assert stands(broker) == "REPLICA 6: [1, 2] of 9"
    assert broker.received[-1] == "replica of broker 2"


def test_an_outcome_that_is_no_longer_awaited_is_no_reason_to_ask_again() -> None:
    broker = master_of_two()
    broker.controller.code = ResponseCode.SYSTEM_ERROR
    broker.controller.before = lambda: broker.role.replica_info_received(
        ReplicaInfoReceived(US, "us", 5, US_TWO, 9, is_answer=False, is_elected=False), broker.playbook.now_ms
    )
    broker.lagging(2)
    assert stands(broker) == "MASTER 5: [1, 2] of 9"
    assert broker.wait(2_000) == []
    assert len(broker.controller.asked) == 1


ASKED_SET = f"store/{constants.ASKED_SET_FILE}"


def began_again(asked: Broker, set_epoch: int = 7, members: frozenset[int] = frozenset({1})) -> Broker:
    """The next process on the disk of a master, and what it is told first."""
    asked.disk.crash()
    broker = fresh(5, asked.disk)
    assert broker.replica_info_received(US, 5, members, set_epoch) == ["master of 5 again"]
    return broker


def asking() -> Broker:
    """A master that asked to expand its set and heard nothing."""
    broker = fresh()
    broker.replica_info_received(US, 5, frozenset({1}), 7)
    broker.controller.code = None
    broker.caught_up(2)
    return broker


def test_whom_it_asked_in_counts_after_it_began_again_until_another_set_or_the_end_of_the_doubt() -> None:
    broker = began_again(asking())
    assert stands(broker) == "MASTER 5: [1] of 7 or [1, 2] in doubt"
    assert broker.replica_info_received(US, 5, US_TWO, 8) == ["counts [1, 2]"]
    assert stands(broker) == "MASTER 5: [1, 2] of 8"
    broker = began_again(broker)
    assert broker.wait(DOUBT_MS - 1) == []
    assert broker.wait(1) == ["asks who is master"]
    assert broker.replica_info_received(US, 5, frozenset({1}), 7, is_answer=True) == ["counts [1]"]
    assert broker.controller.asked == [], "what was refused cleanly before is not asked again"


def test_what_was_asked_for_a_set_or_an_epoch_before_counts_no_more() -> None:
    assert stands(began_again(asking(), 8)) == "MASTER 5: [1] of 8"
    asked = asking()
    asked.disk.crash()
    broker = fresh(6, asked.disk)
    assert broker.replica_info_received(US, 6, frozenset({1}), 7) == ["master of 6 again"]
    assert stands(broker) == "MASTER 6: [1] of 7"


def test_an_older_set_that_is_told_late_counts_with_what_was_asked_for_later() -> None:
    assert stands(began_again(asking(), 6, frozenset({1, 3}))) == "MASTER 5: [1, 3] of 6 or [1, 2] in doubt"


@pytest.mark.parametrize("damage", [b"", b"1\n5\n5:7:1\n", b"0\n0\n", b"\xff\n"])
def test_a_file_of_the_asked_set_that_cannot_be_read_is_refused_with_what_to_do(damage: bytes) -> None:
    broker = asking()
    broker.disk.crash()
    broker.disk.contents[ASKED_SET].data[:] = damage
    with pytest.raises(StorageFailed, match=f"{constants.ASKED_SET_FILE}: .*; move it aside when"):
        Broker(broker.disk)
    del broker.disk.contents[ASKED_SET]
    assert stands(fresh(5, broker.disk)) == "UNDECIDED 5: [] of 0"
