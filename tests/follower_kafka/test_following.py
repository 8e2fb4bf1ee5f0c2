"""A follower copies what its leaders have, asks beyond what is on its disk never, and believes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from replispec.broker.kafka.follower import LeaderAddress
from replispec.runtime.kafka.log import PartitionLog
from replispec.wire.kafka.clients import (
    ApacheFetchRequest,
    ApacheListOffsetsRequest,
    ApacheOffsetForLeaderEpochRequest,
)
from replispec.wire.kafka.codes import ErrorCode
from tests.follower_kafka.played_leader import FollowedPlay, Logs
from tests.runtime.partition_log.logs import TOPIC, fill, marks, opened, written

GENERATIONS = ("0.11.0-IV1", "1.0", "2.2", "2.6")
generations = pytest.mark.parametrize("generation", GENERATIONS)


def leader_of(*runs: tuple[int, int], committed: int | None = None) -> Logs:
    """The log of a leader: runs of (epoch, how many records)."""
    folder, log, files, _ = opened()
    at = 0
    for epoch, count in runs:
        log.begin_epoch(epoch)
        fill(log, count, epoch=epoch, start=at)
        at += count
    written(folder, files)
    log.high_watermark = log.end if committed is None else committed
    return {(TOPIC, 0): log}


def one(logs: Logs) -> PartitionLog:
    """The log of the leader."""
    return logs[TOPIC, 0]


def fetched_at(play: FollowedPlay) -> int:
    """From where the follower asks next."""
    _, _, request = play.questions[0]
    assert isinstance(request, ApacheFetchRequest)
    return request.topics[0].partitions[0].fetch_offset


@generations
def test_the_log_becomes_the_leaders(generation: str) -> None:
    logs = leader_of((0, 5), (3, 4), committed=7)
    play = FollowedPlay(generation, replica_fetch_max_bytes=300)
    play.follow(3)
    play.copy(logs)
    assert marks(play.log) == marks(one(logs))
    assert play.log.epochs.entries == one(logs).epochs.entries
    assert play.log.high_watermark == 7
    one(logs).high_watermark = 9
    play.copy(logs, 2)
    assert play.log.high_watermark == 9
    _, frame, request = play.questions[0]
    assert (frame.api_version, request.replica_id) == (play.versions.fetch, 2)


def test_beyond_an_offset_is_asked_when_all_below_is_on_the_disk() -> None:
    logs = leader_of((0, 5))
    play = FollowedPlay()
    play.follow()
    assert fetched_at(play) == 0
    play.answer(logs)
    # It has the records, and does not say so.
    assert (play.log.end, play.log.flushed, play.questions, play.flushes) == (5, 0, [], 1)
    play.wait(10_000)
    assert play.questions == []
    play.flush()
    assert (play.log.flushed, fetched_at(play)) == (5, 5)
    # The leader had nothing more: it is asked again at once.
    play.answer(logs)
    assert fetched_at(play) == 5


def followed_before(generation: str, *runs: tuple[int, int], committed: int) -> FollowedPlay:
    """A follower with a log that another leader had."""
    play = FollowedPlay(generation)
    before = leader_of(*runs, committed=committed)
    play.follow(runs[-1][0], leader=LeaderAddress(9, "10.0.0.9:9092"))
    play.copy(before)
    play.questions.clear()
    assert marks(play.log) == marks(one(before))
    return play


def test_the_first_generation_cuts_to_the_high_watermark_and_may_lose_what_was_committed() -> None:
    play = followed_before("0.11.0-IV1", (0, 6), committed=4)
    play.follow(1)
    assert play.log.end == 4
    play.flush()
    assert fetched_at(play) == 4


@pytest.mark.parametrize("generation", GENERATIONS[1:])
def test_the_others_cut_where_the_epoch_ended_at_the_leader(generation: str) -> None:
    play = followed_before(generation, (0, 6), committed=2)
    logs = leader_of((0, 5), (1, 3))
    play.follow(1)
    asked = play.answer(logs)
    assert isinstance(asked, ApacheOffsetForLeaderEpochRequest)
    (question,) = asked.topics[0].partitions
    assert question.leader_epoch == 0
    assert question.current_leader_epoch == (1 if generation in GENERATIONS[2:] else None)
    assert (play.log.end, play.questions) == (5, [])
    play.copy(logs)
    assert marks(play.log) == marks(one(logs))


def test_an_epoch_that_is_not_known_here_is_asked_for_again() -> None:
    """KIP-279: two fail-overs, of which each broker saw one."""
    play = followed_before("2.2", (0, 3), (2, 4), committed=3)
    logs = leader_of((0, 3), (1, 6), (3, 1))
    play.follow(3)
    play.answer(logs)
    assert play.log.end == 3
    play.flush()
    asked = play.answer(logs)
    assert isinstance(asked, ApacheOffsetForLeaderEpochRequest)
    assert asked.topics[0].partitions[0].leader_epoch == 0
    play.copy(logs)
    assert marks(play.log) == marks(one(logs))


def test_a_leader_whose_log_ends_before_or_begins_after() -> None:
    play = followed_before("0.11.0-IV1", (0, 6), committed=6)
    short = leader_of((0, 4))
    play.follow(1)
    play.flush()
    play.answer(short)
    begin, end = play.answer(short), play.answer(short)
    assert isinstance(begin, ApacheListOffsetsRequest)
    assert [each.topics[0].partitions[0].timestamp for each in (begin, end)] == [-2, -1]
    assert play.log.end == 4
    gone = leader_of((0, 30))
    one(gone).advance_start(20)
    play.copy(gone)
    assert (play.log.start, marks(play.log)) == (20, marks(one(gone)))


def set_error(error: int) -> Any:
    """Has a leader answer all of a question with an error."""

    def change(answer: Any) -> None:
        for topic in answer.topics:
            for each in topic.partitions:
                each.error = error

    return change


def test_an_error_of_one_partition_holds_up_no_other() -> None:
    play = FollowedPlay(replica_fetch_backoff_ms=500)
    other = play.more(1)
    logs = leader_of((0, 3))
    logs[TOPIC, 1] = one(leader_of((0, 4)))
    play.follow()
    play.follow(log=other)
    play.answer(logs)
    play.flush()

    def change(answer: Any) -> None:
        answer.topics[0].partitions[0].error = ErrorCode.NOT_LEADER

    play.answer(logs, change)
    # The one that had records last comes last, so that it was the other one.
    fill(one(logs), 2, start=3)
    play.copy(logs)
    assert (play.log.end, other.end) == (5, 0)
    assert [each.partition for each in play.questions[0][2].topics[0].partitions] == [0]
    play.wait(500)
    play.copy(logs)
    assert (play.log.end, other.end) == (5, 4)
    assert {each.partition for each in play.questions[0][2].topics[0].partitions} == {0, 1}


def test_a_leader_of_a_newer_epoch_is_not_asked_until_a_command_comes() -> None:
    logs = leader_of((0, 3))
    play = FollowedPlay("2.6")
    play.follow()
    play.answer(logs, set_error(ErrorCode.FENCED_LEADER_EPOCH))
    play.wait(60_000)
    assert play.questions == []
    play.follow(1)
    play.copy(logs)
    assert play.log.end == 3


@pytest.mark.parametrize("error", [ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.STORAGE_ERROR, 999])
def test_what_is_refused_is_asked_again_after_a_pause(error: int) -> None:
    logs = leader_of((0, 3))
    play = FollowedPlay(replica_fetch_backoff_ms=500)
    play.follow()
    play.answer(logs, set_error(error))
    play.wait(499)
    assert play.questions == []
    play.wait(1)
    play.copy(logs)
    assert play.log.end == 3


def test_a_leader_that_is_gone_is_dialled_again_and_one_that_is_silent_too() -> None:
    logs = leader_of((0, 3))
    play = FollowedPlay(replica_fetch_backoff_ms=500, replica_socket_timeout_ms=30_000)
    play.follow()
    play.lose()
    play.wait(500)
    assert len(play.dialled) == 2
    assert fetched_at(play) == 0
    play.wait(30_000)
    assert len(play.closed) == 1
    play.questions.clear()
    play.wait(500)
    play.copy(logs)
    assert play.log.end == 3


def test_what_a_former_leader_answers_is_not_heard() -> None:
    play = FollowedPlay()
    play.follow()
    old = play.questions[0]
    play.follow(1, leader=LeaderAddress(3, "10.0.0.3:9092"))
    assert play.closed == [old[0]]
    assert play.follower.figures(TOPIC, 0) is not None
    play.follower.stop(TOPIC, 0)
    play.carry_out()
    assert play.follower.figures(TOPIC, 0) is None
    assert len(play.closed) == 2
    # A command while a question is under way: its answer is not put.
    play.questions.clear()
    play.follow(2)
    play.follow(3)
    play.answer(leader_of((0, 3)))
    assert play.log.end == 0
    assert fetched_at(play) == 0


# What a leader must not say


def damage(answer: Any) -> None:
    """One bit of a record is another one."""
    said = answer.topics[0].partitions[0]
    said.records = bytes(said.records[:-1]) + bytes([said.records[-1] ^ 1])


def cut_short(answer: Any) -> None:
    """No batch is whole."""
    said = answer.topics[0].partitions[0]
    said.records = bytes(said.records[:80])


@pytest.mark.parametrize("change", [damage, cut_short])
def test_records_that_are_wrong_are_not_put(change: Any) -> None:
    logs = leader_of((0, 3))
    play = FollowedPlay(replica_fetch_backoff_ms=500)
    play.follow()
    play.answer(logs, change)
    assert (play.log.end, play.questions, play.notes) == (0, [], ["leader's records are wrong"])
    play.wait(500)
    play.copy(logs)
    assert play.log.end == 3


def unasked(answer: Any) -> None:
    """A partition that nobody asked for."""
    answer.topics[0].partitions[0].partition = 7


def twice(answer: Any) -> None:
    """A partition two times."""
    answer.topics[0].partitions.append(answer.topics[0].partitions[0])


@pytest.mark.parametrize("change", [unasked, twice])
def test_answers_about_what_was_not_asked_end_the_connection(change: Any) -> None:
    logs = leader_of((0, 3))
    play = FollowedPlay(replica_fetch_backoff_ms=500)
    play.follow()
    play.answer(logs, change)
    assert (len(play.closed), play.notes) == (1, ["broker breaks the protocol"])
    play.flush()
    play.wait(1_000)
    play.copy(logs)
    assert play.log.end == 3


def test_a_partition_that_is_left_out_is_asked_for_again() -> None:
    logs = leader_of((0, 3))
    play = FollowedPlay(replica_fetch_backoff_ms=500)
    play.follow()
    play.answer(logs, lambda answer: answer.topics.clear())
    assert play.questions == []
    play.wait(500)
    assert fetched_at(play) == 0


def test_marks_and_beginnings_that_cannot_be_lead_nowhere() -> None:
    logs = leader_of((0, 3))
    play = FollowedPlay()
    play.follow()

    def far(answer: Any) -> None:
        said = answer.topics[0].partitions[0]
        said.high_watermark, said.log_start_offset = 2**62, 2**62

    play.answer(logs, far)
    play.flush()
    assert (play.log.high_watermark, play.log.start, play.log.end) == (3, 3, 3)

    def negative(answer: Any) -> None:
        said = answer.topics[0].partitions[0]
        said.high_watermark, said.log_start_offset = -(2**63), -(2**63)

    play.answer(logs, negative)
    assert play.log.high_watermark == 3


def test_a_range_that_cannot_be_is_not_believed() -> None:
    play = followed_before("0.11.0-IV1", (0, 6), committed=6)
    play.follow(1)
    play.flush()
    short = leader_of((0, 4))
    play.answer(short)
    play.answer(short)

    def backwards(answer: Any) -> None:
        answer.topics[0].partitions[0].offset = -5

    play.answer(short, backwards)
    assert play.log.end == 6
    play.wait(1_000)
    assert fetched_at(play) == 6


def test_a_full_disk_is_waited_for() -> None:
    logs = leader_of((0, 3))
    play = FollowedPlay(replica_fetch_backoff_ms=500)
    play.follow()
    play.disk.room_bytes = 0
    play.answer(logs)
    assert (play.log.end, play.broken) == (0, [])
    play.disk.room_bytes = None
    play.wait(500)
    play.copy(logs)
    assert play.log.end == 3


def test_all_partitions_of_a_leader_are_asked_for_at_once_and_in_turn() -> None:
    logs = leader_of((0, 3))
    play = FollowedPlay(replica_fetch_response_max_bytes=5_000, replica_fetch_wait_max_ms=70)
    for number in range(1, 4):
        logs[TOPIC, number] = one(leader_of((0, 2)))
        play.follow(log=play.more(number))
    play.follow()
    play.answer(logs)
    play.flush()
    request = play.answer(logs)
    assert (request.max_bytes, request.max_wait, request.min_bytes) == (5_000, 70, 1)
    assert {each.partition for each in request.topics[0].partitions} == {0, 1, 2, 3}
    play.copy(logs)
    assert len(play.dialled) == 1
    assert [play.folder.logs[TOPIC, number].end for number in range(4)] == [3, 2, 2, 2]
