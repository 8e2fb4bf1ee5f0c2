"""Controllers join a group that serves, and leave it: one at a time, whoever leads, and for good."""

from __future__ import annotations

import pytest

from replispec.controller.consensus.raft import ControllerGroup, GroupNode
from replispec.event.v1.event_pb2 import ControllerEvent
from replispec.wire.rocketmq.codes import ResponseCode
from tests.sim.asker import Asker
from tests.sim.changing import (
    FOUNDERS,
    MEMBERS,
    SNAPSHOT,
    addition,
    are_members,
    become,
    comes,
    member,
    removal,
    said,
    transfer,
    voters,
)
from tests.sim.controllers import Controllers
from tests.sim.test_controllers import METADATA, application, leader_of, served

OK = ResponseCode.SUCCESS
REFUSED = ResponseCode.CONTROLLER_INVALID_REQUEST
AWAY_MS = 5_000


def grown(seed: int, *, short: bool = False) -> Controllers:
    """A group of three that serves, and a fourth that has joined."""
    group = Controllers(seed, is_short=short).start()
    served(group)
    comes(group, "controller-4")
    assert group.codes(group.leader(), addition("controller-4")) == [OK]
    become(group, FOUNDERS | {"controller-4"})
    return group


@pytest.mark.parametrize("short", [False, True], ids=["log", "snapshot"])
def test_whoever_is_added_learns_all_that_is_on_record_and_then_votes(short: bool) -> None:
    group = grown(1, short=short)
    group.world.run_for(1_000)
    assert group.records() == 1
    assert bool(group.noted("snapshot taken over")) is short
    # Now three of four decide, and the fourth is as good as any: with one of the first gone it is needed.
    group.world.kill(group.follower())
    assert group.codes(group.leader(), application(4)) == [OK]


def test_an_added_one_that_begins_again_needs_nobody_to_tell_it_who_the_group_is() -> None:
    group = grown(2)
    known = group.record("controller-4")
    for name in group.living():
        group.world.kill(name, power=True)
    # The members that it was told to ask are no more.
    for name in ("controller-2", "controller-3", "controller-4"):
        group.world.start(name)
    group.leader()
    group.world.run_for(1_000)
    assert group.record("controller-4") == known
    assert group.codes(group.leader(), transfer("controller-4")) == [OK]
    assert group.world.run_until(lambda: group.leaders() == ["controller-4"], at_most_ms=3_000)
    group.world.run_for(300)  # the others hear of it
    (answer,) = group.ask("controller-2", METADATA)
    assert leader_of(answer) == ("n4", "127.0.0.4:9878", False)


def test_whoever_is_not_added_waits_and_says_what_for() -> None:
    group = Controllers(3).start()
    group.leader()
    comes(group, "controller-4")
    group.world.run_for(10_000)
    waits = group.noted("not in its group yet")
    assert {(name, values["member"], values["reason"]) for name, values in waits} == {
        ("controller-4", "n4", "the group waits to be told to add n4 at 127.0.0.4:9878")
    }
    assert group.world.processes["controller-4"].disk.changes == []
    assert group.codes("controller-4", METADATA, application(1))[1:] == [ResponseCode.CONTROLLER_NOT_LEADER]
    assert group.codes(group.leader(), addition("controller-4")) == [OK]
    become(group, FOUNDERS | {"controller-4"})


def test_whoever_is_added_before_it_starts_counts_for_nothing_until_it_has_caught_up() -> None:
    group = Controllers(4).start()
    served(group)
    leader = group.leader()
    assert group.codes(leader, addition("controller-4")) == [OK]
    group.world.run_for(AWAY_MS)
    assert voters(group, leader) == {"n1", "n2", "n3"}
    group.world.kill(group.follower())
    assert group.codes(leader, application(4)) == [OK]
    # What is not done yet is in the way of the next one, but not of taking it back.
    assert group.codes(leader, addition("controller-5"), removal("controller-4")) == [
        ResponseCode.SYSTEM_BUSY,
        OK,
    ]
    comes(group, "controller-4")
    group.world.run_for(AWAY_MS)
    failure = group.world.processes["controller-4"].failure or ""
    assert "n4 was removed from the group 'simulation/n1,n2,n3'" in failure


def test_who_is_removed_says_so_in_one_line_and_the_others_go_on() -> None:
    group = Controllers(5).start()
    served(group)
    leader, gone = group.leader(), group.follower()
    assert group.codes(leader, removal(gone)) == [OK]
    become(group, FOUNDERS - {gone})
    group.world.run_for(1_000)
    assert (group.world.processes[gone].failure or "") == (
        f"{member(gone)} was removed from the group 'simulation/n1,n2,n3', for good: to join again it needs "
        f"another id and an empty store"
    )
    term = group.term(leader)
    # Started again it knows that by itself, and disturbs nobody.
    group.world.start(gone)
    group.world.run_for(AWAY_MS)
    assert gone not in group.living()
    assert (group.leaders(), group.term(leader)) == ([leader], term)
    assert group.codes(leader, application(4)) == [OK]


def test_a_leader_that_is_removed_has_another_one_lead_first() -> None:
    group = Controllers(6).start()
    served(group)
    old = group.leader()
    group.world.run_for(1_000)
    assert group.codes(old, removal(old)) == [OK]
    # Sooner than anybody misses a leader.
    assert group.world.run_until(lambda: are_members(group, FOUNDERS - {old}), at_most_ms=500)
    new = group.leader()
    assert new != old
    group.world.run_for(1_000)
    assert f"{member(old)} was removed" in (group.world.processes[old].failure or "")
    assert group.codes(new, application(4)) == [OK]


def test_who_was_away_while_it_was_removed_is_told_when_it_is_back() -> None:
    group = Controllers(7).start()
    served(group)
    away = group.follower()
    group.world.kill(away)
    group.world.run_for(AWAY_MS)
    assert group.codes(group.leader(), removal(away)) == [OK]
    left = FOUNDERS - {away}
    become(group, left)
    # Whoever would have told it has begun again.
    for name in left:
        group.world.kill(name)
    for name in left:
        group.world.start(name)
    leader = group.leader()
    term = group.term(leader)
    group.world.start(away)
    group.world.run_for(AWAY_MS)
    assert f"{member(away)} was removed" in (group.world.processes[away].failure or "")
    assert (group.leaders(), group.term(leader)) == ([leader], term)


def test_every_member_is_another_one_in_the_end_and_nothing_is_lost() -> None:
    group = Controllers(8, is_short=True).start()
    said_first = served(group)
    assert said_first is not None
    members = set(FOUNDERS)
    for number in (4, 5, 6):
        new = f"controller-{number}"
        comes(group, new, controllerJoin=";".join(f"{group.hosts[each]}:9878" for each in sorted(members)))
        assert group.codes(group.leader(), addition(new)) == [OK]
        become(group, members | {new})
        old = group.leader()
        assert group.codes(old, removal(old)) == [OK]
        members = (members | {new}) - {old}
        become(group, members)
        del group.hosts[old]
    group.world.run_for(1_000)
    assert group.records() == 1
    assert group.codes(group.leader(), application(4)) == [OK]
    for name in members:
        group.world.kill(name, power=True)
    for name in members:
        group.world.start(name)
    group.leader()
    group.world.run_for(1_000)
    assert are_members(group, members)
    (answer,) = group.ask(group.leader(), MEMBERS)
    header, who = said(answer)
    assert header.group == "simulation/n1,n2,n3"
    assert {each.id for each in who.members or ()} == set(map(member, members))
    assert len(who.gone or ()) == 3


def test_a_voter_that_one_of_the_others_never_heard_of_may_be_the_only_one_that_can_lead() -> None:
    group = Controllers(18).start()
    served(group)
    leader = group.leader()
    late, other = sorted(FOUNDERS - {leader})
    new = "controller-4"
    group.world.kill(late)
    comes(group, new)
    assert group.codes(leader, addition(new)) == [OK]
    wanted = {"n1", "n2", "n3", "n4"}
    assert group.world.run_until(
        lambda: all(voters(group, each) == wanted for each in (leader, other, new)), at_most_ms=10_000
    )
    group.world.run_for(500)
    # Something that the leader and the new one alone have, and that is not agreed on.
    group.world.kill(other)
    asker = group.add(Asker(f"{group.hosts[leader]}:9878", [application(4)]))
    group.world.run_for(300)
    assert not asker.is_done
    group.world.kill(leader)
    group.world.start(late)
    group.world.start(other)
    assert voters(group, late) == {"n1", "n2", "n3"}
    assert group.leader(but=[leader]) == new
    group.world.run_for(1_000)
    assert group.codes(new, application(4)) == [OK]
    assert voters(group, late) == wanted


# Who is refused by name


def answers(group: Controllers, *questions: object) -> list[tuple[int, str]]:
    """Of the leader: code and remark."""
    found = group.ask(group.leader(), *questions)  # type: ignore[arg-type]
    return [(each.header.code, each.header.remark or "") for each in found]


def test_changes_that_would_mix_members_up_are_refused_by_name() -> None:
    group = grown(9)
    gone = group.follower()
    assert group.codes(group.leader(), removal(gone)) == [OK]
    become(group, (FOUNDERS | {"controller-4"}) - {gone})
    (again, moved, place, stranger, no_place, done, undone) = answers(
        group,
        addition(gone, "127.0.0.9:9878"),
        addition("controller-4", "127.0.0.9:9878"),
        addition("controller-9", "127.0.0.4:9878"),
        removal("controller-9"),
        addition("controller-9", "nowhere"),
        addition("controller-4"),
        removal(gone),
    )
    assert again == (REFUSED, f"{member(gone)} was removed, and no id is given again: choose another one")
    assert moved == (REFUSED, "n4 is a member already, at 127.0.0.4:9878")
    assert (place[0], "is taken for another member" in place[1]) == (REFUSED, True)
    assert stranger == (REFUSED, "n9 is no member")
    assert (no_place[0], "no id with a HOST:PORT" in no_place[1]) == (REFUSED, True)
    # What is done already is no fault.
    assert (done, undone) == ((OK, ""), (OK, ""))


def test_a_removal_is_refused_after_which_nobody_could_lead() -> None:
    group = Controllers(10).start()
    leader = group.leader()
    group.world.run_for(1_000)
    dead, alive = sorted(FOUNDERS - {leader})
    group.world.kill(dead)
    group.world.run_for(AWAY_MS)
    refused, done = answers(group, removal(alive), removal(dead))
    assert refused == (REFUSED, f"without {member(alive)} too few of those that vote are reached")
    assert done == (OK, "")
    become(group, {leader, alive})
    (one,) = answers(group, removal(alive))
    assert one == (OK, "")
    become(group, {leader})
    assert answers(group, removal(leader)) == [(REFUSED, f"{member(leader)} is the last one that votes")]
    assert group.codes(leader, application(1)) == [OK]


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        ({"controllerDLegerGroup": "another"}, "is of the group 'simulation/n1,n2,n3', and this is to join"),
        (
            {"controllerDLegerSelfId": "n2", "controllerDLegerPeers": "n2-127.0.0.4:9878"},
            "n2 of the group 'simulation/n1,n2,n3' is at 127.0.0.2:9878, and this one is at 127.0.0.4:9878",
        ),
        (
            {
                "controllerJoin": "",
                "controllerDLegerPeers": "n1-127.0.0.1:9878;n4-127.0.0.4:9878;n5-127.0.0.5:9878",
            },
            "is of the group 'simulation/n1,n2,n3', and this is of 'simulation/n1,n4,n5'",
        ),
        (
            {
                "controllerJoin": "",
                "controllerDLegerSelfId": "n2",
                "controllerDLegerPeers": "n1-127.0.0.1:9878;n2-127.0.0.4:9878;n3-127.0.0.3:9878",
            },
            "n2 of the group 'simulation/n1,n2,n3' is at 127.0.0.2:9878, and this one is at 127.0.0.4:9878",
        ),
    ],
    ids=["group", "id", "list", "address"],
)
def test_a_newcomer_that_is_of_another_group_or_has_a_members_id_is_refused_by_name_and_writes_nothing(
    overrides: dict[str, object], says: str
) -> None:
    group = Controllers(11).start()
    leader = group.leader()
    comes(group, "controller-4", **overrides)
    group.world.run_for(AWAY_MS)
    process = group.world.processes["controller-4"]
    assert says in (process.failure or "")
    assert process.disk.changes == []
    assert group.leaders() == [leader]


def test_a_removed_one_that_lost_its_store_and_is_told_to_found_its_group_again_is_refused_by_name() -> None:
    group = grown(12)
    gone = group.follower()
    assert group.codes(group.leader(), removal(gone)) == [OK]
    become(group, (FOUNDERS | {"controller-4"}) - {gone})
    group.world.kill(gone)
    process = group.world.processes[gone]
    process.disk.journals.clear()
    group.world.start(gone)
    group.world.run_for(AWAY_MS)
    assert f"{member(gone)} was removed" in (process.failure or "")


def test_a_list_that_names_others_than_the_log_is_told_of_and_changes_nothing() -> None:
    group = grown(13)
    victim = group.follower()
    group.world.kill(victim)
    listed = ";".join(f"n{each}-127.0.0.{each}:9878" for each in (1, 2, 3, 8, 9))
    group.overrides = {victim: {"controllerDLegerPeers": listed}}
    group.world.start(victim)
    group.world.run_for(1_000)
    ((name, values),) = group.noted("controllerDLegerPeers is not the group: what the log says counts")
    assert (name, values["not_members"], values["members"]) == (
        victim,
        ["n8", "n9"],
        ["n1", "n2", "n3", "n4"],
    )
    assert are_members(group, FOUNDERS | {"controller-4"})


# The rest of what an administrator asks


def test_the_lead_is_handed_to_whom_an_administrator_names() -> None:
    group = Controllers(14).start()
    served(group)
    leader = group.leader()
    group.world.run_for(500)
    other = group.follower()
    assert group.codes(leader, transfer(leader), transfer("controller-9")) == [OK, REFUSED]
    assert group.codes(leader, transfer(other)) == [OK]
    assert group.world.run_until(lambda: group.leaders() == [other], at_most_ms=1_000)


def test_every_controller_keeps_a_snapshot_when_it_is_told() -> None:
    group = Controllers(15).start()
    served(group)
    group.world.run_for(1_000)
    for name in group.hosts:
        assert group.codes(name, SNAPSHOT) == [OK]
    group.world.run_for(1_000)
    for name in group.hosts:
        (journal,) = group.world.processes[name].disk.journals.values()
        assert journal.snapshot is not None
        assert journal.records == {}


def test_a_follower_tells_who_the_group_is_and_changes_nothing() -> None:
    group = grown(16)
    follower = group.follower()
    changes = [addition("controller-5"), removal("controller-1"), transfer("controller-1")]
    assert set(group.codes(follower, *changes)) == {ResponseCode.CONTROLLER_NOT_LEADER}
    header, who = said(group.ask(follower, MEMBERS)[0])
    leader = group.leader()
    assert (header.version, header.group, header.member, header.leader) == (
        1,
        "simulation/n1,n2,n3",
        member(follower),
        member(leader),
    )
    assert [(each.id, each.address, each.votes) for each in who.members or ()] == [
        (f"n{each}", f"127.0.0.{each}:9878", True) for each in (1, 2, 3, 4)
    ]


def test_a_controller_that_is_alone_has_no_members_to_change() -> None:
    group = Controllers(17, size=1).start()
    group.leader()
    assert group.codes("controller-1", addition("controller-2"), removal("controller-1"), SNAPSHOT) == [
        REFUSED,
        REFUSED,
        OK,
    ]


def test_of_two_changes_that_build_on_the_same_one_the_first_counts() -> None:
    group = ControllerGroup("g", "n1", {"n1": "127.0.0.1:1"})
    node = GroupNode(group, None, [], None, lambda _limit: 0)
    node.begin(0)
    node.tick(5_000)
    for new in ("n2", "n3"):
        node.propose(ControllerEvent(group_places=node.places.with_member(new, "127.0.0.9:1").record()))
    while (ready := node.ready()) is not None:
        if ready.is_to_be_persisted:
            node.persisted()
    assert node.places.members == {"n1": "127.0.0.1:1", "n2": "127.0.0.9:1"}
    # Where one might be reached is believed before it is agreed on; who is a member is not.
    assert set(node.members) == {"n1", "n2"}
