"""The administrator asks real controllers, name servers and brokers in a simulated world."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import pytest
from click.testing import CliRunner

from replispec.administrator.rocketmq import AdministratorNode, NotAsWantedError, Plan
from replispec.administrator.rocketmq import brokers as of_brokers
from replispec.administrator.rocketmq.controllers import (
    Cleaned,
    Wanted,
    clean,
    configurations,
    configure,
    elect,
    sets,
)
from replispec.administrator.rocketmq.health import judged
from replispec.administrator.rocketmq.plans import Reply
from replispec.administrator.rocketmq.rejoin import log_of, rejoining
from replispec.administrator.rocketmq.status import ControllerView, SetStatus, Status, WhereToAsk, status
from replispec.cli.main import command_line
from replispec.cli.rocketmq.admin import delete_expired_commit_log
from replispec.runtime.rocketmq.framing import Command
from replispec.runtime.rocketmq.remoting.calls import Failure, Outcome
from replispec.runtime.world import Member
from replispec.wire.rocketmq.broker import BrokerData, ClusterInfo
from replispec.wire.rocketmq.codes import ResponseCode
from replispec.wire.rocketmq.options import RetentionOptions
from replispec.wire.rocketmq.remoting import RemotingHeader
from tests.broker.simulated_set import CONTROLLER, NAME_SERVER, BrokerSet

T = TypeVar("T")
LAG_BYTES = 1_000


def carried_out(brokers: BrokerSet, plan: Plan[T]) -> T:
    """What a plan comes to beside a running set."""
    node = AdministratorNode(plan)
    name = f"administrator{len(brokers.world.processes)}"
    brokers.world.add(name, "10.0.0.4", lambda _storage: [Member(name, node)])
    brokers.world.start(name)
    brokers.until(lambda: node.is_done)
    return node.result()


def faults(found: Status) -> list[str]:
    """What is wrong, without notes."""
    return [each.what for each in judged(found, lag_bytes=LAG_BYTES) if each.fault]


def asked(brokers: BrokerSet) -> Status:
    """How the set is, by its controller and name server."""
    return carried_out(brokers, status(WhereToAsk((CONTROLLER,), (NAME_SERVER,))))


def settled(brokers: BrokerSet) -> None:
    """Until name servers know who is master."""
    brokers.world.run_for(35_000)


def test_a_well_set_is_healthy_and_the_status_says_who_is_what() -> None:
    brokers = BrokerSet()
    first, second = brokers.pair()
    learner = brokers.add_learner(1)
    brokers.start("learner1")
    assert brokers.send(first, b"x" * 100)[0] == 0
    settled(brokers)
    found = asked(brokers)
    (one,) = found.sets
    assert (one.name, one.cluster, one.routed) == ("broker-a", "C", first)
    assert [(each.address, each.in_sync) for each in one.members] == [
        (first, True),
        (second, True),
        (learner, False),
    ]
    assert one.master is one.members[0]
    assert one.master.calls_itself_master
    assert [one.lag(each) for each in one.members] == [0, 0, 0]
    assert faults(found) == []
    notes = [each.what for each in judged(found, lag_bytes=LAG_BYTES)]
    assert notes == [f"broker 3 ({learner}) is not in the SyncStateSet"]


def test_a_controller_tells_all_sets_to_who_names_none() -> None:
    brokers = BrokerSet()
    first, _ = brokers.pair()
    found = carried_out(brokers, status(WhereToAsk((CONTROLLER,))))
    assert [each.name for each in found.sets] == ["broker-a"]
    assert found.sets[0].master is not None
    assert found.sets[0].master.address == first
    assert found.sets[0].routed is None


def test_controllers_are_found_by_what_brokers_are_configured_with() -> None:
    brokers = BrokerSet()
    brokers.pair()
    settled(brokers)
    found = carried_out(brokers, status(WhereToAsk(name_servers=(NAME_SERVER,))))
    assert [each.address for each in found.views] == [CONTROLLER]
    assert faults(found) == []


def test_what_is_wrong_after_a_loss_is_said_until_it_is_right_again() -> None:
    brokers = BrokerSet()
    _first, second = brokers.pair()
    settled(brokers)
    brokers.world.kill("broker1")
    brokers.until(lambda: brokers.broker(2).serves)
    found = asked(brokers)
    assert found.sets[0].master is not None
    assert found.sets[0].master.address == second
    assert any("name servers route to" in each for each in faults(found)) or found.sets[0].routed == second
    brokers.start("broker1")
    brokers.until(lambda: brokers.members(2) == {1, 2})
    settled(brokers)
    assert faults(asked(brokers)) == []


def test_a_set_that_nobody_knows_and_a_silent_controller_are_faults() -> None:
    brokers = BrokerSet()
    brokers.pair()
    plan = status(WhereToAsk((CONTROLLER, "10.0.0.77:9878"), (), ("broker-a", "broker-x")))
    found = carried_out(brokers, plan)
    assert sum("does not answer" in each for each in faults(found)) == 1
    assert "no controller knows this broker set" in faults(found)


def test_without_a_controller_brokers_are_told_of_and_it_is_a_fault() -> None:
    brokers = BrokerSet()
    first, second = brokers.pair()
    settled(brokers)
    silent = WhereToAsk(("10.0.0.77:9878",), (NAME_SERVER,))
    found = carried_out(brokers, status(silent))
    assert "no controller answers" in found.without_record
    (told,) = found.sets
    assert {each.address for each in told.members} == {first, second}
    assert {(each.alive, each.in_sync) for each in told.members} == {(None, None)}
    assert [each.address for each in told.members if each.calls_itself_master] == [first]
    said = faults(found)
    assert "none of those that were asked leads" in said
    assert "no controller that leads tells its record: brokers go on as they are" in said


def test_nobody_to_ask_is_one_line() -> None:
    brokers = BrokerSet()
    with pytest.raises(NotAsWantedError, match=r"^no controller answers for broker sets: 10\.0\.0\.77:1: "):
        carried_out(brokers, status(WhereToAsk(("10.0.0.77:1",))))


def test_another_member_is_elected_on_request_and_a_stranger_is_not() -> None:
    brokers = BrokerSet()
    _, second = brokers.pair()
    elected = carried_out(brokers, elect((CONTROLLER,), Wanted("C", "broker-a", 2)))
    assert (elected.master_broker_id, elected.master_address, elected.master_epoch) == (2, second, 2)
    with pytest.raises(NotAsWantedError, match=rf"^{CONTROLLER} refuses: CONTROLLER_ELECT_MASTER_FAILED"):
        carried_out(brokers, elect((CONTROLLER,), Wanted("C", "broker-a", 9)))


def test_a_living_member_is_cleaned_only_when_that_is_wanted() -> None:
    brokers = BrokerSet()
    brokers.pair()
    with pytest.raises(NotAsWantedError, match="CONTROLLER_INVALID_CLEAN_BROKER_METADATA"):
        carried_out(brokers, clean((CONTROLLER,), Cleaned("broker-a", "C", (2,))))
    brokers.world.kill("broker2")
    brokers.world.run_for(30_000)
    carried_out(brokers, clean((CONTROLLER,), Cleaned("broker-a", "C", (2,))))
    found = carried_out(brokers, sets((CONTROLLER,), ["broker-a"]))["broker-a"]
    assert [
        each.broker_id for each in (*(found.in_sync_replicas or ()), *(found.not_in_sync_replicas or ()))
    ] == [1]


def test_a_configuration_is_changed_and_what_cannot_be_is_refused() -> None:
    brokers = BrokerSet()
    carried_out(brokers, configure((CONTROLLER,), "electMasterMaxRetryCount", "7"))
    values = carried_out(brokers, configurations((CONTROLLER,)))[CONTROLLER]
    assert values["electMasterMaxRetryCount"] == "7"
    with pytest.raises(NotAsWantedError, match=r"refuses: (INVALID_PARAMETER|NO_PERMISSION)"):
        carried_out(brokers, configure((CONTROLLER,), "enableElectUncleanMaster", "maybe"))


def test_what_a_dry_run_says_would_be_cut_is_what_is_cut() -> None:
    brokers = BrokerSet()
    first, second = brokers.pair(all_ack_in_sync_state_set=False)
    brokers.send(first, b"a" * 100)
    brokers.world.run_for(1_000)
    brokers.world.kill("broker2")
    brokers.send(first, b"b" * 200)
    longer = brokers.epochs(first)
    brokers.world.kill("broker1")
    brokers.start("broker2")
    carried_out(brokers, configure((CONTROLLER,), "enableElectUncleanMaster", "true"))
    brokers.until(lambda: brokers.broker(2).serves)
    brokers.send(second, b"c" * 300)
    told = rejoining(log_of(longer), log_of(brokers.epochs(second)))
    assert told.cut
    assert told.copied
    brokers.start("broker1")
    brokers.until(lambda: brokers.epochs(first).max_offset == brokers.epochs(second).max_offset)
    cut = [
        note.values for name, note in brokers.notes if name == "broker1" and note.what.startswith("log cut")
    ]
    assert [(each["ended"], each["cut"]) for each in cut] == [(told.end, told.agree)]


def test_records_that_differ_and_two_that_call_themselves_master_are_faults() -> None:
    brokers = BrokerSet()
    brokers.pair()
    found = carried_out(brokers, status(WhereToAsk((CONTROLLER,))))
    (view,), (one,) = found.views, found.sets
    assert view.sets is not None
    assert view.metadata is not None
    changed = {"broker-a": replace(view.sets["broker-a"], master_epoch=9)}
    other = ControllerView(
        "10.0.0.9:9878", replace(view.metadata, controller_leader_address="10.0.0.9:9878"), changed
    )
    second = replace(one.members[1], replication=one.members[0].replication)
    members = [one.members[0], second]
    both = Status([view, other], [SetStatus(one.name, one.record, members)])
    said = faults(both)
    assert "several controllers say that they lead" in said
    assert any(each.startswith("they name different leaders") for each in said)
    assert f"{CONTROLLER} and 10.0.0.9:9878 have different records of it" in said
    assert any(each.startswith("several brokers say that they are master: 1 ") for each in said)


def test_brokers_that_a_name_server_does_not_know_are_named_with_those_that_it_does() -> None:
    brokers = BrokerSet()
    first, second = brokers.pair()
    settled(brokers)
    known = carried_out(brokers, of_brokers.clusters((NAME_SERVER,)))
    assert set(known.addresses(known.cluster("C").values())) == {first, second}
    assert known.masters(known.sets().values()) == [first]
    with pytest.raises(NotAsWantedError, match=r"^no broker set x: there are broker-a$"):
        known.broker_set("x")


def _told_by(*clusters: dict[str, dict[int, str]] | None) -> of_brokers.Brokers:
    """What is known when name servers tell these sets of cluster C, or are silent."""
    plan = of_brokers.clusters_of_all([str(at) for at in range(len(clusters))])
    try:
        asked = next(plan)
        while True:
            asked = plan.send([Reply(each, _cluster_answer(clusters[int(each.address)])) for each in asked])
    except StopIteration as end:
        found: of_brokers.Brokers = end.value
        return found


def _cluster_answer(sets: dict[str, dict[int, str]] | None) -> Outcome:
    if sets is None:
        return Failure("Connection refused", False)
    table = {name: BrokerData(members, name, "C").to_json() for name, members in sets.items()}
    info = ClusterInfo.from_json({"brokerAddrTable": table, "clusterAddrTable": {"C": list(sets)}})
    return Command(RemotingHeader(code=ResponseCode.SUCCESS), info.encode())


def test_a_broker_that_any_name_server_knows_is_there() -> None:
    a, b = {"a": {0: "a0"}}, {"b": {0: "b0"}}
    assert _told_by(a, {**a, **b}).sets() == _told_by({**a, **b}, a).sets() == {**a, **b}
    assert _told_by(None, b).sets() == b


def test_of_a_broker_set_the_first_name_server_counts_that_knows_its_master() -> None:
    first, second = {"a": {1: "a1"}}, {"a": {0: "a0", 1: "a1"}}
    assert _told_by(first, second, {"a": {0: "other"}}).sets() == second


def test_where_no_name_server_answers_that_is_said() -> None:
    with pytest.raises(NotAsWantedError, match="Connection refused"):
        _told_by(None, None)


@pytest.mark.parametrize("words", [("-c", "C"), ()])
def test_every_member_is_asked_to_delete_what_is_old(
    words: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    brokers = BrokerSet()
    first, _ = brokers.pair(retention=RetentionOptions(file_reserved_time=0, delete_when=""))
    settled(brokers)
    for _ in range(6):
        brokers.send(first, bytes(30_000))
        brokers.world.run_for(2_000)
    logs = [brokers.broker(number)._log.store.log for number in (1, 2)]
    assert [log.first for log in logs] == [0, 0]
    monkeypatch.setattr(delete_expired_commit_log, "ask", lambda plan: carried_out(brokers, plan))
    line = ["admin", "deleteExpiredCommitLog", "-n", NAME_SERVER, *words]
    done = CliRunner().invoke(command_line, line, standalone_mode=False)
    assert (done.exception, done.return_value, done.output) == (None, 0, "success\n")
    brokers.until(lambda: all(log.first > 0 for log in logs))
