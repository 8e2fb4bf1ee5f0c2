"""What was answered is on the disk; what is on the disk is all that decides."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replispec.controller.rocketmq.core.broker_sets import BrokerSets
from replispec.controller.rocketmq.node import ControllerNode
from replispec.event.v1.event_pb2 import ControllerEvent
from replispec.runtime.primitives.headers import Header
from replispec.runtime.rocketmq import rules
from replispec.runtime.rocketmq.remoting.server import REQUESTS_AT_ONCE
from replispec.runtime.sim import Crashed, Disk, Left, Rng, SimulatedJournal
from replispec.runtime.world import Dial, Note, Received, Send
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from replispec.wire.rocketmq.controller import CleanBrokerDataRequest, GetReplicaInfoResponse, SyncStateSet
from replispec.wire.rocketmq.machines.broker_set import MACHINE, ElectionAsked, Event, IdApplied, MasterLost
from replispec.wire.rocketmq.machines.broker_set_wire import NOTES, record_of
from tests.controller import conversation

BROKERS = (1, 2, 3)


@dataclass(frozen=True)
class Does:
    """One thing that happens to a controller; `words` are its numbers."""

    what: str
    words: tuple[int, ...] = ()


def play(talk: conversation.Talk, does: Does) -> int | None:
    """Let it happen; the code of the answer, if there is one."""
    words = does.words
    if does.what == "wait":
        talk.wait(words[0])
        return None
    if does.what == "close":
        talk.close(words[0])
        return None
    code, header, body = _request(does)
    connection = words[0] if does.what == "beat" else len(BROKERS) + 1
    return talk.ask(connection, code, header, body).header.code


def _request(does: Does) -> tuple[int, Header, bytes]:
    one, *more = does.words
    header: Header
    match does.what:
        case "apply":
            return RequestCode.CONTROLLER_APPLY_BROKER_ID, conversation.application(one), b""
        case "register":
            header = conversation.registration(one, f"127.0.0.1:{more[0]}")
            return RequestCode.CONTROLLER_REGISTER_BROKER, header, b""
        case "beat":
            return RequestCode.BROKER_HEARTBEAT, conversation.heartbeat(one, max_offset=more[0]), b""
        case "elect":
            header = conversation.election(one, designate=bool(more[0]))
            return RequestCode.CONTROLLER_ELECT_MASTER, header, b""
        case "alter":
            header = conversation.alteration(one, more[0])
            return (
                RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET,
                header,
                conversation.members(more[1], *more[2:]),
            )
    named = None if one == 0 else str(one)
    return (
        RequestCode.CLEAN_BROKER_DATA,
        CleanBrokerDataRequest(conversation.CLUSTER, conversation.SET, None, named, True),
        b"",
    )


def connected(journal: object, snapshot_records: int = 1_000) -> conversation.Talk:
    """A controller on a journal; broker N has connection N, everybody else the one after them."""
    talk = conversation.controller(journal, snapshot_records=snapshot_records)  # type: ignore[arg-type]
    for _ in range(len(BROKERS) + 1):
        talk.connect()
    return talk


def recorded(node: object) -> dict[str, object]:
    """All that a controller has on record."""
    assert isinstance(node, ControllerNode)
    sets: BrokerSets = node._sets
    return {each.name: (each.state, each.variables) for each in sets}


broker = st.sampled_from(BROKERS)
happenings = st.one_of(
    st.builds(Does, st.just("apply"), st.tuples(st.integers(0, 5))),
    st.builds(Does, st.just("register"), st.tuples(broker, st.integers(30_000, 30_003))),
    st.builds(Does, st.just("beat"), st.tuples(broker, st.integers(0, 3))),
    st.builds(Does, st.just("elect"), st.tuples(st.sampled_from((-1, *BROKERS)), st.integers(0, 1))),
    st.builds(
        Does,
        st.just("alter"),
        st.builds(
            lambda master, epoch, set_epoch, members: (master, epoch, set_epoch, *sorted(members)),
            broker,
            st.integers(1, 3),
            st.integers(1, 4),
            st.sets(broker),
        ),
    ),
    st.builds(Does, st.just("clean"), st.tuples(st.integers(0, 3))),
    st.builds(Does, st.just("wait"), st.tuples(st.sampled_from((100, 6_000, 12_000)))),
)


@given(st.lists(happenings, max_size=30), st.integers(1, 12))
def test_what_records_have_made_stands_for_them(happened: list[Does], snapshot_records: int) -> None:
    plain, replaced = conversation.StoredJournal(), conversation.StoredJournal()
    talks = [
        connected(plain),
        connected(replaced, snapshot_records),
    ]
    for talk in talks:
        for broker_id in BROKERS:
            play(talk, Does("apply", (broker_id,)))
    for does in happened:
        assert len({play(talk, does) for talk in talks}) == 1, does
    again = conversation.controller(replaced, snapshot_records=snapshot_records)
    assert recorded(again.node) == recorded(talks[1].node) == recorded(talks[0].node)
    assert len(replaced.kept) <= snapshot_records
    first = 1 if replaced.replaced is None else replaced.replaced[0] + 1
    assert [index for index, _ in replaced.kept] == list(range(first, first + len(replaced.kept)))


def test_a_start_reads_the_records_of_the_newest_part_alone() -> None:
    journal = conversation.StoredJournal()
    talk = connected(journal, 50)
    play(talk, Does("apply", (1,)))
    for number in range(500):
        assert play(talk, Does("register", (1, 30_000 + number))) == ResponseCode.SUCCESS
    assert len(journal.kept) < 50
    talk = conversation.controller(journal)
    assert recorded(talk.node) != {}
    (read,) = (each for each in talk.effects if isinstance(each, Note))
    assert int(str(read.values["records"])) < 50
    assert int(str(read.values["replaced"])) > 450


def test_a_snapshot_that_is_none_ends_the_start_and_says_so() -> None:
    journal = conversation.StoredJournal()
    talk = connected(journal, 5)
    for does in SCRIPT:
        play(talk, does)
    assert journal.replaced is not None
    index, whole = journal.replaced
    for wrong in ((index, whole[:-1]), (index + 1, whole), (index, b""), (index, whole + b"\xa2\x06\x00")):
        journal.replaced = wrong
        reason = conversation.controller(journal).halted()
        assert reason is not None
        assert "snapshot" in reason


@given(st.lists(happenings, max_size=30))
def test_whatever_happened_the_log_alone_gives_the_same_records(happened: list[Does]) -> None:
    journal = conversation.StoredJournal()
    talk = connected(journal)
    for broker_id in BROKERS:
        play(talk, Does("apply", (broker_id,)))
    for does in happened:
        play(talk, does)
    before = recorded(talk.node)
    assert recorded(conversation.controller(journal).node) == before


SCRIPT = (
    Does("apply", (1,)),
    Does("apply", (2,)),
    Does("beat", (1, 0)),
    Does("beat", (2, 0)),
    Does("register", (1, 30_001)),
    Does("elect", (1, 0)),
    Does("alter", (1, 1, 1, 1, 2)),
    Does("apply", (3,)),
    Does("elect", (2, 1)),
    Does("clean", (3,)),
)


@pytest.mark.parametrize("snapshot_records", [1_000, 3, 1])
@pytest.mark.parametrize("left", list(Left), ids=lambda left: left.value)
def test_a_crash_at_any_write_loses_nothing_that_was_answered(left: Left, snapshot_records: int) -> None:
    """The same script is played with a crash in write 1, 2, 3 ... until none is left to crash in."""
    crashes = 0
    for number in range(1, 100):
        disk = Disk(Rng(number))
        disk.crash_at(number, left)
        answered: list[Does] = []
        try:
            talk = connected(SimulatedJournal(disk), snapshot_records)
            for does in SCRIPT:
                assert play(talk, does) == ResponseCode.SUCCESS, does
                answered.append(does)
        except Crashed:
            crashes += 1
        else:
            break
        disk.crash()
        after = recorded(connected(SimulatedJournal(disk)).node)
        assert after in [outcome(len(answered)), outcome(len(answered) + 1)]
    writes = 1 + len([does for does in SCRIPT if does.what != "beat"])
    assert crashes == writes + writes // snapshot_records


def outcome(count: int) -> dict[str, object]:
    """What is on record after the first steps of the script, without a crash."""
    talk = connected(conversation.StoredJournal())
    for does in SCRIPT[:count]:
        play(talk, does)
    return recorded(talk.node)


def test_after_a_crash_the_answers_are_those_that_were_given() -> None:
    disk = Disk(Rng(1))
    talk = connected(SimulatedJournal(disk))
    for does in SCRIPT:
        play(talk, does)
    disk.crash()
    talk = connected(SimulatedJournal(disk))
    answer = talk.ask(1, RequestCode.CONTROLLER_GET_REPLICA_INFO, conversation.question())
    header = GetReplicaInfoResponse.from_ext_fields(answer.header.ext_fields or {})
    assert (header.master_broker_id, header.master_epoch) == (2, 2)
    assert SyncStateSet.decode(answer.body).broker_ids == [2]
    again = talk.ask(1, RequestCode.CONTROLLER_APPLY_BROKER_ID, conversation.application(2))
    assert again.header.code == ResponseCode.SUCCESS
    granted = talk.ask(1, RequestCode.CONTROLLER_APPLY_BROKER_ID, conversation.application(3))
    assert granted.header.code == ResponseCode.CONTROLLER_BROKER_ID_INVALID


def test_a_disk_that_fails_ends_the_process_before_anybody_is_answered() -> None:
    disk = Disk(Rng(1))
    talk = connected(SimulatedJournal(disk))
    play(talk, SCRIPT[0])
    disk.plan = lambda what: "input/output error" if what.startswith("append") else None
    data = talk.frame(RequestCode.CONTROLLER_APPLY_BROKER_ID, conversation.application(2))
    effects = talk.give(Received(1, data, talk.now_ms))
    assert not any(isinstance(each, Send) for each in effects)
    assert "input/output error" in (talk.halted() or "")
    disk.plan = None
    assert talk.give(Received(1, data, talk.now_ms)) == []


def test_a_full_disk_refuses_changes_answers_questions_and_takes_changes_when_there_is_room() -> None:
    disk = Disk(Rng(1))
    talk = connected(SimulatedJournal(disk))
    for does in SCRIPT[:7]:
        play(talk, does)
    before = recorded(talk.node)
    disk.room_bytes = 0
    for does in (
        Does("apply", (3,)),
        Does("alter", (1, 1, 2, 1)),
        Does("elect", (2, 1)),
        Does("clean", (2,)),
    ):
        assert play(talk, does) == ResponseCode.SYSTEM_ERROR, does
    asked = talk.ask(1, RequestCode.CONTROLLER_GET_REPLICA_INFO, conversation.question())
    assert GetReplicaInfoResponse.from_ext_fields(asked.header.ext_fields or {}).master_broker_id == 1
    assert play(talk, Does("apply", (2,))) == ResponseCode.SUCCESS, "what is on record is answered from"
    assert play(talk, Does("beat", (1, 7))) == ResponseCode.SUCCESS
    assert recorded(talk.node) == before
    assert talk.noted().count("no room for the log: changes are refused") == 1
    disk.room_bytes = None
    for does in SCRIPT[7:]:
        assert play(talk, does) == ResponseCode.SUCCESS, does
    assert talk.noted()[-1] != "no room for the log: changes are refused"
    assert recorded(talk.node) == outcome(len(SCRIPT))
    disk.crash()
    assert recorded(connected(SimulatedJournal(disk)).node) == outcome(len(SCRIPT))


def test_a_master_that_died_while_the_disk_was_full_is_replaced_when_there_is_room() -> None:
    disk = Disk(Rng(1))
    talk = connected(SimulatedJournal(disk))
    for does in SCRIPT[:7]:
        play(talk, does)
    disk.room_bytes = 0
    play(talk, Does("close", (1,)))
    play(talk, Does("beat", (2, 0)))
    play(talk, Does("wait", (2_000,)))
    info = conversation.question()
    received = talk.ask(3, RequestCode.CONTROLLER_GET_REPLICA_INFO, info).header.ext_fields or {}
    assert GetReplicaInfoResponse.from_ext_fields(received).master_broker_id == 1
    writes = len(disk.changes)
    play(talk, Does("wait", (3_000,)))
    assert len(disk.changes) - writes <= 3, "a full disk is tried again after pauses that grow"
    disk.room_bytes = None
    play(talk, Does("beat", (2, 0)))
    play(talk, Does("wait", (5_000,)))
    received = talk.ask(3, RequestCode.CONTROLLER_GET_REPLICA_INFO, info).header.ext_fields or {}
    answer = GetReplicaInfoResponse.from_ext_fields(received)
    assert (answer.master_broker_id, answer.master_epoch) == (2, 2)


def test_a_master_that_comes_back_before_there_is_room_stays_master() -> None:
    disk = Disk(Rng(1))
    talk = connected(SimulatedJournal(disk))
    for does in SCRIPT[:7]:
        play(talk, does)
    disk.room_bytes = 0
    play(talk, Does("close", (1,)))
    talk.ask(talk.connect(), RequestCode.BROKER_HEARTBEAT, conversation.heartbeat(1))
    disk.room_bytes = None
    play(talk, Does("wait", (5_000,)))
    assert recorded(talk.node) == outcome(7)


def test_a_master_elected_while_it_died_is_replaced_as_soon_as_it_is_on_record() -> None:
    talk = connected(conversation.StoredJournal())
    for does in SCRIPT[:7]:
        play(talk, does)
    talk.holds_writes = True
    data = talk.frame(RequestCode.CONTROLLER_ELECT_MASTER, conversation.election(2, designate=True))
    talk.give(Received(3, data, talk.now_ms))
    play(talk, Does("close", (2,)))
    talk.write()
    received = (
        talk.ask(3, RequestCode.CONTROLLER_GET_REPLICA_INFO, conversation.question()).header.ext_fields or {}
    )
    assert GetReplicaInfoResponse.from_ext_fields(received).master_epoch == 3


def test_a_start_on_a_full_disk_answers_questions_and_goes_on_when_there_is_room() -> None:
    disk = Disk(Rng(1))
    talk = connected(SimulatedJournal(disk))
    for does in SCRIPT[:7]:
        play(talk, does)
    records = len(SimulatedJournal(disk).records())
    disk.crash()
    disk.room_bytes = 0
    talk = connected(SimulatedJournal(disk))
    assert recorded(talk.node) == outcome(7)
    assert play(talk, Does("apply", (3,))) == ResponseCode.SYSTEM_ERROR
    disk.room_bytes = None
    play(talk, Does("wait", (200,)))
    assert len(SimulatedJournal(disk).records()) == records + 1
    assert play(talk, Does("apply", (3,))) == ResponseCode.SUCCESS


def test_what_arrives_while_a_write_is_under_way_is_one_write_after_it_and_answered_in_order() -> None:
    journal = conversation.StoredJournal()
    talk = connected(journal)
    before = journal.commits
    talk.holds_writes = True
    for number in range(1, 65):
        frame = talk.frame(
            RequestCode.CONTROLLER_APPLY_BROKER_ID, conversation.application(1, f"set-{number}")
        )
        talk.give(Received(1 + number % 3, frame, talk.now_ms))
    assert (len(talk.held), talk.answers) == (1, {})
    talk.write()
    assert journal.commits == before + 2
    for connection in (1, 2, 3):
        answers = talk.answers[connection]
        assert {each.header.code for each in answers} == {ResponseCode.SUCCESS}
        assert [each.header.opaque for each in answers] == sorted(each.header.opaque for each in answers)
    assert sum(map(len, talk.answers.values())) == 64


def test_nobody_is_answered_and_nothing_shown_before_the_write_has_ended() -> None:
    talk = connected(conversation.StoredJournal())
    for does in SCRIPT[:6]:
        play(talk, does)
    before = recorded(talk.node)
    talk.holds_writes = True
    data = talk.frame(
        RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET,
        conversation.alteration(1, 1),
        conversation.members(1, 1, 2),
    )
    effects = talk.give(Received(3, data, talk.now_ms))
    play(talk, Does("close", (1,)))
    assert not any(isinstance(each, Send | Dial) for each in effects)
    assert recorded(talk.node) == before
    talk.close(3)
    talk.write()
    assert 3 not in talk.answers, "whoever asked is gone"
    assert recorded(talk.node) != before


def test_a_damaged_record_ends_the_start() -> None:
    disk = Disk(Rng(1))
    talk = connected(SimulatedJournal(disk))
    play(talk, SCRIPT[0])
    disk.crash()
    disk.journals["journal"].damaged.append(2)
    assert "record 2 of journal is not what was written" in (
        conversation.controller(SimulatedJournal(disk)).halted() or ""
    )


def test_requests_that_arrive_together_are_one_write() -> None:
    journal = conversation.StoredJournal()
    talk = connected(journal)
    before = journal.commits
    frames = [
        talk.frame(RequestCode.CONTROLLER_APPLY_BROKER_ID, conversation.application(1, f"set-{number}"))
        for number in range(REQUESTS_AT_ONCE)
    ]
    talk.give(Received(1, b"".join(frames), talk.now_ms))
    assert journal.commits == before + 1
    assert [each.header.code for each in talk.answers[1]] == [ResponseCode.SUCCESS] * REQUESTS_AT_ONCE


def test_what_changes_nothing_is_not_logged() -> None:
    journal = conversation.StoredJournal()
    talk = connected(journal)
    for does in SCRIPT:
        play(talk, does)
    before = len(journal.kept)
    for does in (
        Does("apply", (2,)),
        Does("apply", (9,)),
        Does("register", (1, 30_001)),
        Does("register", (9, 30_001)),
        Does("elect", (1, 0)),
        Does("alter", (1, 1, 1, 1, 2)),
        Does("beat", (2, 5)),
        Does("wait", (3_000,)),
    ):
        play(talk, does)
    assert len(journal.kept) == before


def test_a_start_tells_nobody_again_what_was_decided_before() -> None:
    journal = conversation.StoredJournal()
    talk = connected(journal)
    for does in SCRIPT:
        play(talk, does)
    talk = conversation.controller(journal)
    assert talk.noted() == ["log read"]
    assert talk.dialled() == []


def test_what_is_no_loss_of_a_master_is_not_logged() -> None:
    journal = conversation.StoredJournal()
    talk = connected(journal)
    for does in SCRIPT[:7]:
        play(talk, does)
    before = len(journal.kept)
    play(talk, Does("close", (2,)))
    assert len(journal.kept) == before
    talk = connected(journal)
    play(talk, Does("wait", (60_000,)))
    assert len(journal.kept) == before + 1, (
        "a start is a record; a silent master whom nobody can follow is none"
    )


def test_a_removed_set_may_come_back_in_another_cluster_and_a_living_one_does_not_move() -> None:
    talk = connected(conversation.StoredJournal())
    for cluster, broker_id, expected in (("a", 1, "a"), ("b", 2, "a"), ("c", 3, "c")):
        if cluster == "c":
            play(talk, Does("clean", (0,)))
        header = conversation.application(broker_id)
        header.cluster_name = cluster
        assert talk.ask(1, RequestCode.CONTROLLER_APPLY_BROKER_ID, header).header.code == ResponseCode.SUCCESS
        known = recorded(talk.node)[conversation.SET]
        assert isinstance(known, tuple)
        assert known[-1].cluster_name == expected


def test_a_candidate_that_is_a_learner_is_never_elected() -> None:
    sets = BrokerSets(unclean=False)

    def recorded_as(event: Event) -> ControllerEvent:
        variables = sets.named(conversation.SET).variables
        return ControllerEvent(**record_of(conversation.SET, event, variables, rules))

    for broker_id in (1, 2):
        sets.apply(
            recorded_as(
                IdApplied(broker_id, f"{conversation.address(broker_id)};1", None, conversation.CLUSTER)
            )
        )
    beats = [conversation.heartbeat(each) for each in (1, 2)]
    sets.apply(recorded_as(ElectionAsked(1, None, beats, unclean=False)))
    lost = recorded_as(MasterLost(1, beats[1:], unclean=True))
    lost.elect_master.candidates[0].async_learner = True
    sets.apply(lost)
    assert sets.named(conversation.SET).variables.master is None


def test_each_edge_that_changes_a_set_says_so_in_a_line() -> None:
    silent = [
        f"{state.name}, {event.__name__}: {edge.to.name}"
        for (state, event), edges in MACHINE.transitions.items()
        for edge in edges
        if (edge.assign or edge.to is not state) and NOTES.keys().isdisjoint(edge.do)
    ]
    assert silent == []
