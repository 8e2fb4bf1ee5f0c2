"""A broker has one identity for life, wherever it dies on the way to it."""

import pytest

from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.sim import Crashed, Disk, Left, Rng, SimulatedFiles
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.constants import IDENTITY_FILE, IDENTITY_TEMPORARY_FILE
from replispec.wire.rocketmq.machines.broker_registration import State
from replispec.wire.rocketmq.remoting import RemotingHeader
from tests.runtime.membership.registering import MASTER, Granting, Registering

NEXT = RequestCode.CONTROLLER_GET_NEXT_BROKER_ID
APPLY = RequestCode.CONTROLLER_APPLY_BROKER_ID
REGISTER = RequestCode.CONTROLLER_REGISTER_BROKER
INFO = RequestCode.CONTROLLER_GET_REPLICA_INFO
ASK = RequestCode.CONTROLLER_GET_METADATA_INFO


def fresh_disk() -> Disk:
    return Disk(Rng(1))


def names(disk: Disk) -> list[str]:
    return list(SimulatedFiles(disk).names())


def line(disk: Disk, name: str) -> str:
    return (SimulatedFiles(disk).read(name) or b"").decode()


def test_a_first_start_asks_applies_keeps_and_registers() -> None:
    disk, controller = fresh_disk(), Granting()
    broker = Registering(disk, controller)
    broker.begin()
    broker.playbook << [ASK, NEXT, APPLY, REGISTER]
    assert broker.registration.state is State.REGISTERED
    assert broker.registration.broker_id == 1
    assert broker.received == [(MASTER, 4)]
    assert names(disk) == [IDENTITY_FILE]
    assert line(disk, IDENTITY_FILE).startswith("C#broker-a#1")


def test_a_restart_only_registers_again_under_its_new_address() -> None:
    disk, controller = fresh_disk(), Granting()
    Registering(disk, controller).begin()
    broker = Registering(disk, controller)
    broker.begin("127.0.0.1:20911")
    broker.playbook << [ASK, REGISTER]
    assert controller.addresses == {1: "127.0.0.1:20911"}
    assert controller.next_id == 2


def test_a_temporary_file_that_cannot_be_written_leaves_nothing_and_is_tried_again() -> None:
    disk, controller = fresh_disk(), Granting()
    disk.plan = lambda what: "no space left" if what.startswith("replace") else None
    broker = Registering(disk, controller)
    broker.begin()
    broker.playbook << [ASK, NEXT]
    assert names(disk) == []
    disk.plan = lambda _what: None
    broker.wait(1_000)
    assert broker.registration.broker_id == 1


@pytest.mark.parametrize(("names_free", "again"), [(True, [APPLY]), (False, [NEXT, APPLY])])
def test_an_id_that_another_broker_took_first_is_given_up(names_free: bool, again: list[int]) -> None:
    disk, controller = fresh_disk(), Granting(names_free=names_free)
    controller.rival = True
    broker = Registering(disk, controller)
    broker.begin()
    broker.playbook << [ASK, NEXT, APPLY, *again, REGISTER]
    assert broker.registration.broker_id == 2
    assert names(disk) == [IDENTITY_FILE]
    assert line(disk, IDENTITY_FILE).startswith("C#broker-a#2#")
    assert controller.codes[1] == "another;1"


def test_a_refused_id_is_forgotten_on_the_disk_too() -> None:
    disk, controller = fresh_disk(), Granting()
    controller.rival = True
    disk.plan = lambda what: "no space left" if what.startswith("replace") and controller.codes else None
    broker = Registering(disk, controller)
    broker.begin()
    assert names(disk) == []
    assert broker.registration.state is State.INITIAL


def test_without_an_answer_the_same_id_is_applied_for_with_the_same_code() -> None:
    disk, controller = fresh_disk(), Granting()
    controller.lost = {APPLY}
    broker = Registering(disk, controller)
    broker.begin()
    broker.wait(3_000)
    assert broker.registration.state is State.CREATE_TEMP_METADATA_FILE_DONE
    controller.lost = set()
    broker.wait(1_000)
    broker.playbook << [ASK, NEXT, APPLY, ASK, APPLY, REGISTER]
    assert list(controller.codes) == [1]


def test_without_an_answer_the_next_id_is_asked_for_again() -> None:
    disk, controller = fresh_disk(), Granting()
    controller.lost = {NEXT}
    broker = Registering(disk, controller)
    broker.begin()
    broker.wait(3_000)
    assert broker.registration.state is State.INITIAL
    controller.lost = set()
    broker.wait(1_000)
    broker.playbook << [ASK, NEXT, ASK, NEXT, APPLY, REGISTER]


def test_an_id_that_is_none_is_not_applied_for() -> None:
    disk, controller = fresh_disk(), Granting()
    controller.codes = {-1: "nobody"}
    broker = Registering(disk, controller)
    broker.begin()
    broker.playbook << [ASK, NEXT]
    assert broker.registration.state is State.INITIAL
    controller.codes = {}
    broker.wait(1_000)
    assert broker.registration.broker_id == 1


def test_a_registration_without_an_answer_is_sent_again() -> None:
    disk, controller = fresh_disk(), Granting()
    controller.lost = {REGISTER}
    broker = Registering(disk, controller)
    broker.begin()
    broker.wait(3_000)
    assert broker.registration.state is State.CREATE_METADATA_FILE_DONE
    controller.lost = set()
    broker.wait(1_000)
    broker.playbook << [ASK, NEXT, APPLY, REGISTER, ASK, REGISTER]
    assert broker.received == [(MASTER, 4)]


def test_who_is_forgotten_registers_again_until_it_is_known() -> None:
    disk, controller = fresh_disk(), Granting()
    broker = Registering(disk, controller)
    broker.begin()
    controller.lost = {REGISTER}
    unknown = ResponseCode.CONTROLLER_BROKER_METADATA_NOT_EXIST
    answer = Command(RemotingHeader(code=unknown))
    broker.playbook >> (lambda now_ms: broker.registration.answered(INFO, answer, now_ms))
    broker.wait(3_000)
    assert broker.registration.state is State.REGISTERED
    controller.lost = set()
    broker.wait(1_000)
    broker.playbook << [ASK, NEXT, APPLY, REGISTER, REGISTER, ASK, REGISTER]
    assert broker.received == [(MASTER, 4)] * 2
    assert broker.registration.state is State.REGISTERED


def test_a_lost_answer_to_the_application_burns_no_id() -> None:
    disk, controller = fresh_disk(), Granting()
    controller.lost = {APPLY}
    Registering(disk, controller).begin()
    disk.crash()
    controller.lost = set()
    broker = Registering(disk, controller, at_ms=99_000)
    broker.begin()
    broker.playbook << [ASK, APPLY, REGISTER]
    assert broker.registration.broker_id == 1
    assert controller.next_id == 2


@pytest.mark.parametrize("seed", range(4))
def test_a_rename_that_fails_is_tried_again_without_another_application(seed: int) -> None:
    disk, controller = Disk(Rng(seed)), Granting()
    disk.plan = lambda what: "input/output error" if what.startswith("rename") else None
    broker = Registering(disk, controller)
    broker.begin()
    assert broker.registration.broker_id == 0
    assert len(names(disk)) == 1, "it happened or it did not; nobody can tell"
    disk.plan = lambda _what: None
    broker.wait(1_000)
    broker.playbook << [ASK, NEXT, APPLY, REGISTER]
    assert broker.registration.broker_id == 1


def test_of_two_files_the_final_one_wins() -> None:
    disk, controller = fresh_disk(), Granting()
    controller.codes = {1: "a;1", 2: "a;2"}
    files = SimulatedFiles(disk)
    files.replace(IDENTITY_FILE, b"C#broker-a#1")
    files.replace(IDENTITY_TEMPORARY_FILE, b"C#broker-a#2#a;2")
    broker = Registering(disk, controller)
    broker.begin()
    assert broker.registration.broker_id == 1
    assert names(disk) == [IDENTITY_FILE]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"X#broker-a#1", "'X'"),
        (b"C#broker-b#1", "'broker-b'"),
        (b"C#broker-a", "cannot be read"),
        (b"", "cannot be read"),
        (b"C#broker-a#0", "ids start at 1"),
    ],
)
def test_a_final_file_that_is_not_ours_ends_the_process_and_stays(content: bytes, complaint: str) -> None:
    disk, controller = fresh_disk(), Granting()
    SimulatedFiles(disk).replace(IDENTITY_FILE, content)
    broker = Registering(disk, controller)
    broker.begin()
    assert broker.playbook.halted is not None
    assert complaint in broker.playbook.halted
    assert SimulatedFiles(disk).read(IDENTITY_FILE) == content
    assert REGISTER not in broker.playbook.codes()


def test_a_temporary_file_that_is_cut_counts_as_none() -> None:
    disk, controller = fresh_disk(), Granting()
    SimulatedFiles(disk).replace(IDENTITY_TEMPORARY_FILE, b"C#broker-a")
    broker = Registering(disk, controller)
    broker.begin()
    broker.playbook << [ASK, NEXT, APPLY, REGISTER]
    assert names(disk) == [IDENTITY_FILE]


def test_a_controller_that_forgot_everything_keeps_the_broker_out() -> None:
    disk = fresh_disk()
    Registering(disk, Granting()).begin()
    broker = Registering(disk, Granting())
    broker.begin()
    broker.wait(1_000)
    assert broker.playbook.codes().count(REGISTER) == 2
    assert broker.registration.state is State.CREATE_METADATA_FILE_DONE
    assert any("does not know" in note.what for note in broker.playbook.notes)


def test_several_brokers_get_ids_without_a_gap() -> None:
    controller = Granting()
    brokers = [Registering(fresh_disk(), controller, at_ms=number) for number in range(5)]
    controller.lost = {NEXT, APPLY}
    for broker in brokers:
        broker.begin()
    controller.lost = set()
    for _ in range(8):
        for broker in brokers:
            broker.wait(2_000)
    assert sorted(broker.registration.broker_id for broker in brokers) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("left", [Left.NOTHING, Left.ALL])
def test_a_crash_at_any_write_costs_neither_the_identity_nor_an_id(left: Left) -> None:
    for number in range(1, 10):
        disk, controller = fresh_disk(), Granting()
        disk.crash_at(number, left)
        try:
            Registering(disk, controller).begin()
        except Crashed:
            broker = Registering(disk, controller, at_ms=5_000)
            broker.begin()
            assert broker.registration.broker_id == 1
            assert controller.next_id == 2
            assert names(disk) == [IDENTITY_FILE]
        else:
            break
    assert number == 3, "the temporary file and its renaming are the two writes"
