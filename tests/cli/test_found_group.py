"""A group is founded with what a living controller tells, and its brokers go on under it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.command import replispec
from tests.cli.test_three_controllers import Line, Programs, free_ports, programs

__all__ = ["programs"]
pytestmark = pytest.mark.skipif(
    os.environ.get("REPLISPEC_CRASHES") != "all", reason="four processes: of the long proofs"
)


def test_brokers_go_on_under_a_group_that_was_told_of_them(programs: Programs, tmp_path: Path) -> None:
    ports = free_ports(4)
    old, new = (f"127.0.0.1:{port}" for port in ports[:2])
    (tmp_path / "n1.properties").write_text(
        f"controllerDLegerGroup=group-a\ncontrollerDLegerPeers=n1-{new}\ncontrollerDLegerSelfId=n1\n"
        "controllerStorePath=n1-store\n"
    )
    asked = [
        *("admin", "found", "-c", "n1.properties", "--from-controller", old),
        *("--cluster", "DefaultCluster", "--broker-set", "broker-a"),
    ]
    programs.start("old", "controller", listenPort=ports[0], storePathRootDir="old-store")

    def broker(name: str, port: int) -> None:
        programs.start(
            name,
            "broker",
            brokerName="broker-a",
            controllerAddr=f"{old};{new}",
            listenPort=port,
            haListenPort=port + 1,
            storePathRootDir=f"{name}-store",
            mappedFileSizeCommitLog=1 << 20,
        )

    def is_master(line: Line) -> bool:
        return str(line[1]["what"]) == "master now"

    unknown = replispec(*asked, cwd=tmp_path)
    assert (unknown.returncode, "knows no brokers of broker-a" in unknown.stderr) == (1, True)
    broker("b1", ports[2])
    assert programs.until(is_master)[0] == "b1"
    broker("b2", ports[3])
    programs.until(lambda line: line[1].get("sync_state_set") == "[1, 2]")
    for more, says in ((["--dry-run"], "would be"), ([], "is")):
        found = replispec(*asked, *more, cwd=tmp_path)
        assert found.returncode == 0, found.stderr
        assert found.stdout.splitlines() == [
            "1 broker sets, as of record 1 in term 1",
            "  broker-a of DefaultCluster: master 1 of masterEpoch 1, in sync 1, 2 (epoch 2)",
            f"    1  127.0.0.1:{ports[2]}",
            f"    2  127.0.0.1:{ports[3]}",
            f"n1-store {says} the store of the only member of the group group-a/n1",
        ]
    again = replispec(*asked, cwd=tmp_path)
    assert (again.returncode, "there is a log already" in again.stderr) == (1, True)
    programs.kill("old")
    programs.start(
        "n1",
        "controller",
        controllerDLegerGroup="group-a",
        controllerDLegerPeers=f"n1-{new}",
        controllerDLegerSelfId="n1",
        controllerStorePath="n1-store",
    )
    programs.until(lambda line: (line[0], line[1]["what"]) == ("n1", "leader found"))
    programs.kill("b1")
    _, line = programs.until(lambda line: line[1]["what"] == "master elected")
    assert (line["master"], line["master_epoch"]) == (2, 2)
    assert programs.until(is_master)[0] == "b2"


def test_a_group_is_founded_with_what_living_brokers_tell(programs: Programs, tmp_path: Path) -> None:
    """The controller and its store are gone; the master goes on in the next masterEpoch, under its id."""
    ports = free_ports(4)
    old, new = (f"127.0.0.1:{port}" for port in ports[:2])
    (tmp_path / "n1.properties").write_text(
        f"controllerDLegerGroup=group-a\ncontrollerDLegerPeers=n1-{new}\ncontrollerDLegerSelfId=n1\n"
        "controllerStorePath=n1-store\n"
    )
    programs.start("old", "controller", listenPort=ports[0], storePathRootDir="old-store")
    for name, port in (("b1", ports[2]), ("b2", ports[3])):
        programs.start(
            name,
            "broker",
            brokerName="broker-a",
            controllerAddr=f"{old};{new}",
            listenPort=port,
            haListenPort=port + 1,
            storePathRootDir=f"{name}-store",
            mappedFileSizeCommitLog=1 << 20,
        )
        if name == "b1":
            programs.until(lambda line: str(line[1]["what"]) == "master now")
    programs.until(lambda line: line[1].get("sync_state_set") == "[1, 2]")
    programs.kill("old")
    asked = [
        *("controller", "import", "-c", "n1.properties"),
        *("--from-brokers", f"127.0.0.1:{ports[2]};127.0.0.1:{ports[3]}"),
    ]
    untold = replispec(*asked, cwd=tmp_path)
    assert (untold.returncode, "--master-id broker-a=ID" in untold.stderr) == (1, True)
    found = replispec(*asked, "--master-id", "broker-a=1", cwd=tmp_path)
    assert (found.returncode, found.stdout.splitlines()[1]) == (
        0,
        "  broker-a of DefaultCluster: no master of masterEpoch 1, in sync 1 (epoch 0)",
    )
    programs.start(
        "n1",
        "controller",
        controllerDLegerGroup="group-a",
        controllerDLegerPeers=f"n1-{new}",
        controllerDLegerSelfId="n1",
        controllerStorePath="n1-store",
    )
    _, line = programs.until(lambda line: line[1]["what"] == "master elected")
    assert (line["master"], line["master_epoch"]) == (1, 2)
    programs.until(lambda line: line[1].get("sync_state_set") == "[1, 2]")
