"""Which scenarios are played, and what is made of what programs say and leave."""

from __future__ import annotations

import argparse
import socket
from pathlib import Path

import pytest

from lab.cluster import Cluster
from lab.errors import LabError
from lab.family import ROUNDS, SEED
from lab.forward import OUTSIDE, Forwarded
from lab.interop.__main__ import arguments_of
from lab.ports import LOOPBACK
from lab.rocketmq.fetch import pins
from lab.rocketmq.interop import figures, orderly, tables
from lab.rocketmq.interop.rounds import STRUCK, How, Victim, planned
from replispec.broker.rocketmq.core.table_file import sealed
from replispec.wire.rocketmq import constants


def asked(*given: str) -> argparse.Namespace:
    """What `make interop` asks for."""
    return arguments_of(["--family", "rocketmq", *given])


def test_all_scenarios_are_played_unless_some_are_named() -> None:
    every = [
        "a",
        "b",
        "c",
        "d",
        "e",
        "f",
        "group",
        "javagroup",
        "jraftgroup",
        "moved",
        "moved-jraft",
        "generations",
        "statictopic",
        "staticsets",
        "staticmixed",
        "staticolder",
        "logicalpreview",
        "logicalolder",
        "oldandnew",
        "orderly",
        "secured",
    ]
    assert asked().scenarios == every
    assert asked("c", "a").scenarios == ["c", "a"]


def test_rounds_and_their_seed_are_of_the_command_line() -> None:
    assert (asked().rounds, asked().seed, asked().release) == (ROUNDS, SEED, "")
    given = asked("group", "--rounds", "20", "--seed", "7")
    assert (given.scenarios, given.rounds, given.seed) == (["group"], 20, 7)


def test_an_unknown_scenario_is_named_with_those_that_exist(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        asked("z")
    known = "a, b, c, d, e, f, group, javagroup, jraftgroup, moved, moved-jraft, generations"
    later = "staticsets, staticmixed, staticolder, logicalpreview, logicalolder, oldandnew, orderly"
    assert f"no scenario 'z': there are {known}, statictopic, {later}, secured" in capsys.readouterr().err


def test_each_family_has_scenarios_of_its_own() -> None:
    every = ["controlled", "mixed", "tails", "handed", "learned"]
    assert arguments_of(["--family", "kafka"]).scenarios == every


def line(offset: int, at_ms: int, status: str = "READ") -> dict[str, object]:
    return {"key": "k", "status": status, "queue": 1, "offset": offset, "at_ms": at_ms}


def test_what_a_group_had_read_is_given_again_only_below_a_floor_that_was_known_by_then() -> None:
    floors = [(100, {1: 5}), (200, {1: 9})]
    fine = [line(4, 99), line(5, 101), line(8, 199), line(9, 201), line(0, 300, "READ_AGAIN")]
    back = [line(4, 101), line(8, 201)]
    assert figures.given_again([*fine, *back], floors) == back


def test_a_position_falls_where_a_broker_tells_less_or_nothing() -> None:
    assert figures.fallen({0: 3, 1: 5, 2: 0}, {0: 3, 1: 4}) == {1}
    assert figures.fallen({0: 3}, {}) == {0}


def test_a_refused_message_counts_as_read_once_it_came_again() -> None:
    assert figures.read([line(1, 1, "REFUSED")]) == set()
    assert figures.read([line(1, 1, "REFUSED"), line(0, 2, "READ_AGAIN")]) == {"k"}


def test_the_first_rounds_strike_everybody_in_every_way() -> None:
    struck = {(strike.victim, strike.how) for strikes in planned(ROUNDS, SEED) for strike in strikes}
    assert struck == {(victim, how) for victim in Victim for how in How}


def test_rounds_are_of_the_seed_and_leave_a_majority() -> None:
    rounds = planned(200, 5)
    assert planned(20, 5) == rounds[:20] != planned(20, 6)
    assert {frozenset(strike.victim for strike in strikes) for strikes in rounds} == {*map(frozenset, STRUCK)}
    for strikes in rounds:
        controllers = [strike for strike in strikes if strike.victim != Victim.MASTER]
        assert len(controllers) <= 1 >= len(strikes) - len(controllers)
    # They come back in any order, and before a send was accepted or after.
    pairs = {
        tuple((each.victim, each.is_late) for each in strikes) for strikes in rounds if len(strikes) == 2
    }
    assert len(pairs) == 16


def sent(status: str, begun_ms: int, at_ms: int) -> dict[str, object]:
    return {"key": "k", "status": status, "begun_ms": begun_ms, "at_ms": at_ms}


def test_a_send_is_accepted_again_when_one_that_began_after_the_strike_is_acknowledged() -> None:
    under_way, refused = sent("SEND_OK", 90, 130), sent("RemotingConnectException", 150, 160)
    assert figures.accepted_ms([under_way, refused], 100) is None
    later = [sent("FLUSH_SLAVE_TIMEOUT", 170, 180), sent("SEND_OK", 190, 200), sent("SEND_OK", 210, 220)]
    assert figures.accepted_ms([under_way, refused, *later], 100) == 200


GROUP_TOLD = """
#ControllerGroup\tlab
#ControllerLeaderId\tn2
#ControllerLeaderAddress\t127.0.0.1:9872
#Peer:\tn1:127.0.0.1:9871
#Peer:\tn2:127.0.0.1:9872
"""
MEMBERS_TOLD = """
#brokerName\tbroker-a
#MasterBrokerId\t2
#MasterAddr\t127.0.0.1:10911
#MasterEpoch\t3
#SyncStateSetEpoch\t7
#SyncStateSetNums\t1

InSyncReplica:\tReplicaIdentity{brokerName='broker-a', brokerId=2, brokerAddress='127.0.0.1:10911'}

NotInSyncReplica:\tReplicaIdentity{brokerName='broker-a', brokerId=1, brokerAddress='127.0.0.1:10921'}
"""


def test_what_mqadmin_tells_of_a_group_is_its_leader_and_its_members() -> None:
    assert figures.group_told(GROUP_TOLD) == ("127.0.0.1:9872", {"127.0.0.1:9871", "127.0.0.1:9872"})
    assert figures.members_told(MEMBERS_TOLD) == ("127.0.0.1:10911", 3, {"127.0.0.1:10911"})
    assert figures.group_told("") == ("", set())
    assert figures.members_told("") == ("", 0, set())


def test_a_release_that_is_not_pinned_is_named_with_those_that_are() -> None:
    with pytest.raises(LabError, match="apache-9 is not pinned: there are apache-5") as refused:
        pins("apache-9")
    assert ", apache-5.4.0, " in str(refused.value)


def test_tables_of_a_mixed_set_are_compared_without_checksum_and_version(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    java = b'{\n\t"dataVersion":{"counter":13},"offsetTable":{1:19}\n}'
    ours = sealed(b'{"dataVersion":{"counter":2},"offsetTable":{"1":19}}')
    for name, data in (("java", java), ("ours", ours)):
        path = tmp_path / "data" / name / constants.DELAYS_FILE
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
    found = tables.on_disk(cluster, "java")
    assert found == tables.on_disk(cluster, "ours")
    assert tables.configured(found, "T", "g") == (None, (None, None), {"1": 19})
    tables.forget(cluster, "ours")
    assert set(tables.on_disk(cluster, "ours").values()) == {None}


def test_who_goes_on_from_what_was_delivered_keeps_all_else_and_falls_back_in_no_level() -> None:
    def of(delays: dict[str, int], group: str = "g") -> tables.Tables:
        return {
            constants.GROUPS_FILE: {"subscriptionGroupTable": {group: {}}},
            constants.DELAYS_FILE: {"offsetTable": delays},
            constants.REQUEST_MODES_FILE: None,
        }

    before = of({"1": 19, "3": 2})
    assert tables.go_on(before, of({"1": 25, "3": 2, "4": 1}))
    assert not tables.go_on(before, of({"1": 18, "3": 2}))
    assert not tables.go_on(before, of({"1": 25}))
    assert not tables.go_on(before, of({"1": 25, "3": 2}, group="other"))
    assert not tables.go_on({**before, constants.DELAYS_FILE: None}, before)


def test_what_comes_to_another_address_is_passed_on_both_ways() -> None:
    with socket.create_server((LOOPBACK, 0)) as server:
        port = server.getsockname()[1]
        with Forwarded(OUTSIDE[0], LOOPBACK, port) as forwarded:
            with socket.create_connection((OUTSIDE[0], port)) as client:
                inner, _ = server.accept()
                with inner:
                    client.sendall(b"there")
                    assert inner.recv(5) == b"there"
                    inner.sendall(b"back")
                    assert client.recv(4) == b"back"
                assert client.recv(1) == b""
            assert forwarded.accepted == 1


def ordered(queue: int, offset: int, key: str, begun_ms: int) -> dict[str, object]:
    told = {"queue": queue, "offset": offset, "begun_ms": begun_ms, "at_ms": begun_ms + 10}
    return {"key": key, "status": "READ", **told}


def test_a_queue_is_read_in_order_where_nothing_is_left_out_and_nothing_is_another_than_before() -> None:
    again = [ordered(0, 0, "a", 1), ordered(0, 1, "b", 20), ordered(0, 0, "a", 40), ordered(0, 1, "b", 60)]
    assert orderly.out_of_order([*again, ordered(1, 0, "c", 5), ordered(0, 2, "d", 80)]) == []
    early, other = ordered(0, 3, "e", 80), ordered(0, 1, "x", 90)
    assert orderly.out_of_order([*again, early, other]) == [early, other]


def test_a_queue_is_read_by_two_at_once_where_one_begins_before_the_other_is_done() -> None:
    first = [ordered(0, 0, "a", 0), ordered(0, 1, "b", 20)]
    fine = {"first": first, "second": [ordered(0, 2, "c", 30), ordered(1, 0, "d", 5)]}
    assert orderly.read_at_once(fine) == []
    late = {"first": first, "second": [ordered(0, 2, "c", 29)]}
    assert [line["key"] for line in orderly.read_at_once(late)] == ["c"]
