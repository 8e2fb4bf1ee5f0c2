"""What is known of Java's brokers is told by a rule, and everything else fails a scenario."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from lab.cluster import Cluster
from lab.errors import LabError
from lab.interop.measured import LOST, MISSED, Measured, as_json, judge_summary
from lab.ports import LOOPBACK
from lab.processes import StartedProcess
from lab.rocketmq.interop.recounts import SAID, Recounts
from lab.rocketmq.interop.relieved import stood_still_s
from lab.rocketmq.interop.rounds import How, Victim, by_turns
from lab.rocketmq.interop.strays import LOOK_S, STRAY_S, Strays
from lab.rocketmq.interop.woken import OF_LOSSES, REASON, Woken, may_be_alone, rightly_elected
from lab.sockets import connected_ports
from replispec.runtime.net.log_shell import Log
from replispec.runtime.world import Level

MASTER, REPLICATION, ANOTHER = "127.0.0.1:12313", "127.0.0.1:12314", "127.0.0.1:12309"
CONFIRMED = "the master of epoch 8 had confirmed its log up to 9, and the next epoch starts at 5"


def woken() -> Woken:
    return Woken((MASTER, REPLICATION), 8, resumed_ms=1_000, whole_ms=2_000)


def confirmed(**other: Any) -> dict[str, Any]:
    """Evidence that the woken master confirmed alone, as the replay tells it, but for what is other."""
    connection = f"{REPLICATION}<->127.0.0.1:53216#1"
    return {
        "verdict": "violated",
        "time_ns": 1_500 * 10**6,
        "connection": connection,
        "text": CONFIRMED,
        **other,
    }


def acknowledged() -> dict[str, Any]:
    """Evidence that it acknowledged a message alone."""
    text = "the message at 7, acknowledged by the master of epoch 8, lies after the start of a later epoch"
    return confirmed(text=text, connection=f"127.0.0.1:4000<->{MASTER}#2")


def missed(broker: str = MASTER, at_ms: int = 1_500) -> dict[str, Any]:
    """The line of a producer whose message nobody reads."""
    return {"at_ms": at_ms, "stored": broker}


def lost(**other: Any) -> dict[str, Any]:
    return {"epoch": 8, "broker": MASTER, "acknowledged_ns": 1_500 * 10**6, **other}


def test_a_woken_master_is_known_to_confirm_and_acknowledge_alone() -> None:
    excuse = woken().excuse
    assert excuse("confirmed-bytes-survive", confirmed())
    assert excuse(OF_LOSSES, acknowledged())
    assert excuse(LOST, lost())
    assert excuse(MISSED, missed())


@pytest.mark.parametrize(
    ("rule", "row"),
    [
        ("confirmed-bytes-survive", confirmed(time_ns=999 * 10**6)),
        ("confirmed-bytes-survive", confirmed(time_ns=2_001 * 10**6)),
        ("confirmed-bytes-survive", confirmed(connection=f"{ANOTHER}<->127.0.0.1:1#1")),
        ("confirmed-bytes-survive", confirmed(text=CONFIRMED.replace("epoch 8", "epoch 9"))),
        ("confirmed-bytes-survive", confirmed(text=CONFIRMED.replace("epoch 8", "epoch 88"))),
        ("one-master-per-epoch", confirmed()),
        (LOST, lost(epoch=9)),
        (LOST, lost(broker=ANOTHER)),
        (LOST, lost(acknowledged_ns=999 * 10**6)),
        (MISSED, missed(at_ms=2_001)),
        (MISSED, missed(ANOTHER)),
    ],
)
def test_nobody_else_and_nothing_before_or_after_is_excused(rule: str, row: dict[str, Any]) -> None:
    assert woken().excuse(rule, row) is None


def test_only_releases_whose_masters_count_replicas_as_gone_may_be_alone() -> None:
    assert [may_be_alone(release) for release in ("5.1.0", "5.3.4", "5.4.0", "5.5.0", "5.10.1")] == [
        *(False, False, True, True, True)
    ]


def told(log: Path, *lines: tuple[str, dict[str, Any]]) -> Path:
    """Lines of a controller, by whoever writes them."""
    with log.open("w") as file:
        file.write("no JSON\n")
        written = Log(file, Level.INFO, lambda: 0)
        for what, values in lines:
            written.write(Level.INFO, "controller", what, values)
    return log


def elected(epoch: int, master: int, members: list[int], set_epoch: int) -> tuple[str, dict[str, Any]]:
    return "master elected", {
        "master": master,
        "master_epoch": epoch,
        "sync_state_set": members,
        "sync_state_set_epoch": set_epoch,
    }


@pytest.mark.parametrize(("members", "is_right"), [([1, 2], True), ([1, 3], False)])
def test_whoever_was_elected_must_have_been_in_the_set_on_record(
    tmp_path: Path, members: list[int], is_right: bool
) -> None:
    changed = "sync state set changed", elected(1, 1, members, 2)[1]
    first = told(tmp_path / "1", elected(1, 1, [1], 1), changed)
    second = told(tmp_path / "2", elected(2, 2, [2], 3), elected(3, 1, [1], 4))
    assert rightly_elected([second, first], 1) is is_right
    assert not rightly_elected([first], 1)


def summary(*findings: dict[str, Any], lost_count: int = 0) -> dict[str, Any]:
    return {
        "verdicts": {"ok": 1},
        "findings": list(findings),
        "losses": [{"acknowledged": lost_count}] if lost_count else [],
    }


def finding(rule: str, count: int, *evidence: dict[str, Any]) -> dict[str, Any]:
    return {
        "invariant": rule,
        "verdict": "violated",
        "counts": {"violated": count},
        "evidence": list(evidence),
    }


def measured() -> Measured:
    return Measured("test", excuses=[woken().excuse])


def test_a_scenario_passes_when_all_that_is_wrong_is_known(tmp_path: Path) -> None:
    (tmp_path / "lost.jsonl").write_text(json.dumps(lost()) + "\n")
    kept = measured()
    kept.missed.append(missed())
    kept.known["only-master-alters: so it is"] = "for a reason"
    known = {"verdict": "violated", "text": "so it is"}
    found = [finding("confirmed-bytes-survive", 1, confirmed()), finding("only-master-alters", 1, known)]
    judge_summary(kept, summary(*found, lost_count=1), tmp_path)
    assert kept.figures["known: 1 lost, 1 not read"]
    assert kept.figures["known: only-master-alters, 1 shown, such as: so it is"] == "for a reason"


@pytest.mark.parametrize(("violated", "is_known"), [(21, True), (22, False)])
def test_violations_that_a_finding_has_no_room_for_are_judged_as_the_losses_that_they_are(
    tmp_path: Path, violated: int, is_known: bool
) -> None:
    (tmp_path / "lost.jsonl").write_text((json.dumps(lost()) + "\n") * 21)
    kept = measured()
    kept.of_losses = OF_LOSSES
    told = summary(finding(kept.of_losses, violated, *[acknowledged()] * 20), lost_count=21)
    with nullcontext() if is_known else pytest.raises(LabError, match="2 more than it shows"):
        judge_summary(kept, told, tmp_path)
    assert kept.figures.get("known: 21 lost, 0 not read") == (REASON if is_known else None)


@pytest.mark.parametrize(
    ("what", "found", "lost_count", "missed"),
    [
        ("rules violated", finding("confirmed-bytes-survive", 1, confirmed(time_ns=1)), 0, []),
        ("1 more than it shows", finding("confirmed-bytes-survive", 2, confirmed()), 0, []),
        ("lost by the account", None, 2, []),
        ("the consumer misses", None, 1, [missed(), missed(at_ms=3)]),
    ],
)
def test_a_scenario_fails_by_what_is_not_known(
    tmp_path: Path, what: str, found: dict[str, Any] | None, lost_count: int, missed: list[dict[str, Any]]
) -> None:
    (tmp_path / "lost.jsonl").write_text(json.dumps(lost()) + "\n")
    strict = measured()
    strict.missed.extend(missed)
    with pytest.raises(LabError, match=what):
        judge_summary(strict, summary(*filter(None, [found]), lost_count=lost_count), tmp_path)


def test_a_process_is_connected_where_the_kernel_says_so() -> None:
    own = StartedProcess("own", os.getpid(), "")
    with socket.create_server((LOOPBACK, 0)) as server:
        port = server.getsockname()[1]
        assert port not in connected_ports(own)
        with socket.create_connection((LOOPBACK, port)):
            assert port in connected_ports(own)
        gone = subprocess.Popen([sys.executable, "-c", ""])
        gone.wait()
        assert connected_ports(StartedProcess("gone", gone.pid, "")) == set()


class Kernel:
    """Who copies from whom, and the time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, cluster: Cluster) -> None:
        self.ports: set[int] = set()
        self.now_s = 100.0
        monkeypatch.setattr("lab.rocketmq.interop.strays.connected_ports", lambda _: self.ports)
        monkeypatch.setattr("lab.rocketmq.interop.strays.time.monotonic", lambda: self.now_s)
        self.strays = Strays(cluster, ("broker-1", "broker-2", "broker-3"))

    def after(self, seconds: float) -> list[tuple[str, str]]:
        self.now_s += seconds
        return self.strays.found("broker-2", ["broker-1"])


def test_a_replica_that_copies_from_an_earlier_master_is_known_by_kernel_and_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(tmp_path)
    cluster.ports = list(range(20_000, 20_048))
    cluster.processes = {"broker-1": StartedProcess("broker-1", 0, "")}
    kernel = Kernel(monkeypatch, cluster)
    log = cluster.part("log") / "broker-1.log"
    right, wrong = cluster.ha_port("broker-2"), cluster.ha_port("broker-3")
    line = "INFO update master ha address, OLD: null NEW: 127.0.0.1:{}\n"
    log.write_text(line.format(wrong))
    kernel.ports = {wrong}
    # It was not told of its master yet.
    assert kernel.after(2 * STRAY_S) == kernel.after(2 * STRAY_S) == []
    log.write_text(line.format(wrong) + line.format(right))
    assert kernel.after(LOOK_S) == kernel.after(STRAY_S / 2) == []
    # While it is connected to its master it is no stray, however long that lasts.
    kernel.ports = {wrong, right}
    assert kernel.after(2 * STRAY_S) == []
    kernel.ports = {wrong}
    assert kernel.after(LOOK_S) == kernel.after(STRAY_S / 2) == []
    assert kernel.after(STRAY_S) == [("broker-1", "broker-3")]


def test_a_controller_that_applied_a_record_twice_is_named_once_for_each_time(tmp_path: Path) -> None:
    recounts = Recounts(cluster := Cluster(tmp_path))
    names = ("controller-1", "controller-2")
    logs = [cluster.part("log") / f"{name}.log" for name in names]
    assert recounts.found(names) is None
    for log in logs:
        log.write_text(f"ERROR {SAID}\n")
    assert [recounts.found(names) for _ in range(3)] == [*names, None]
    logs[1].write_text(f"ERROR {SAID}\nERROR {SAID}\n")
    assert [recounts.found(names) for _ in range(2)] == [names[1], None]


def test_whatever_was_noted_is_written_down() -> None:
    noted = Measured("test")
    noted.note("members", [("n1", {"127.0.0.1:1"})])
    assert json.loads(as_json({"test": noted.figures})) == {"test": {"members": [["n1", "{'127.0.0.1:1'}"]]}}


def test_rounds_by_turns_kill_leader_and_master_alone_and_together() -> None:
    rounds = by_turns(7)
    assert rounds[5:] == rounds[:2]
    assert {each.how for strikes in rounds for each in strikes} == {How.KILL}
    victims = [{each.victim for each in strikes} for strikes in rounds[:5]]
    assert victims == [
        *({Victim.LEADER}, {Victim.MASTER}, {Victim.LEADER}, {Victim.MASTER}),
        {Victim.LEADER, Victim.MASTER},
    ]


def test_how_long_a_relieved_master_waited_for_its_own_lock_is_what_its_log_says() -> None:
    said = "INFO RocketmqCommon join thread[{}], elapsed time: {}ms, join time:90000ms\n"
    waited = said.format("TransactionalMessageCheckService", 1) + said.format(
        "TransactionalMessageCheckService", 90_000
    )
    assert stood_still_s(waited + said.format("FlowMonitor", 95_000)) == 90.0
    assert stood_still_s(said.format("FlowMonitor", 90_000)) == 0
