"""`replispec status` and `replispec admin` beside real processes on loopback."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from replispec.cli.main import command_line
from replispec.cli.shown import FORMATS
from replispec.runtime.net.ask_shell import until
from tests.cli.command import command, replispec

WAIT_S = 60.0


class Cluster:
    """A name server with the controller inside, and two brokers."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self._stack = stack
        self.processes: dict[str, subprocess.Popen[str]] = {}
        self.told: dict[str, Any] = {}
        values = {"enableControllerInNamesrv": "true", "controllerStorePath": "controller-store"}
        told = self.start("nameserver", "nameserver", controllerDLegerPeers="n0-127.0.0.1:0", **values)
        self.name_server, self.controller = told["nameserver"]["nameserver"], told["controller"]["controller"]
        self.brokers = [self.broker(number) for number in (1, 2)]
        self.until(lambda: len([each for each in self.rows() if each["in_sync"]]) == 2)

    def start(self, name: str, role: str, **parameters: str) -> Any:
        """Start a process; where its roles listen."""
        arguments = [part for key, value in parameters.items() for part in ("--set", f"{key}={value}")]
        log = self._stack.enter_context((self.folder / f"{name}.err").open("w"))
        process = subprocess.Popen(
            command(role, "--set", "listenPort=0", *arguments),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=self.folder,
        )
        self._stack.callback(self.end, process)
        self.processes[name] = process
        assert process.stdout is not None
        self.told[name] = json.loads(process.stdout.readline())["roles"]
        return self.told[name]

    @staticmethod
    def end(process: subprocess.Popen[str]) -> None:
        """End a process, however it is."""
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()

    def broker(self, number: int) -> str:
        """Start a broker; its address."""
        told = self.start(
            f"broker-{number}",
            "broker",
            brokerName="broker-a",
            haListenPort="0",
            namesrvAddr=self.name_server,
            controllerAddr=self.controller,
            storePathRootDir=f"store-{number}",
            mappedFileSizeCommitLog="1048576",
            brokerIP1="127.0.0.1",
            brokerIP2="127.0.0.1",
        )
        address: str = told["broker"]["main"]
        return address

    def run(self, *words: str) -> Result:
        """One command, with the name server in the environment."""
        return CliRunner().invoke(command_line, list(words), env={"NAMESRV_ADDR": self.name_server})

    def rows(self) -> list[dict[str, Any]]:
        """What `replispec status` shows."""
        done = self.run("status", self.controller, "--set", "broker-a", "--format", "json")
        return json.loads(done.stdout) if done.exit_code == 0 else []

    def until(self, is_so: Any) -> None:
        """Wait until something is so."""
        assert until(lambda: is_so() or None, wait_s=WAIT_S, pause_s=0.05), self.rows()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with ExitStack() as stack:
        yield Cluster(tmp_path_factory.mktemp("cluster"), stack)


def test_the_status_names_members_roles_epochs_and_lag(cluster: Cluster) -> None:
    done = cluster.run("status", cluster.controller)
    assert done.exit_code == 0
    assert f"controller {cluster.controller}: leads replispec" in done.stdout
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["broker-a", "1", cluster.brokers[0], "master"] in [line[:4] for line in lines]
    assert ["broker-a", "2", cluster.brokers[1], "replica", "yes", "yes"] in [line[:6] for line in lines]
    assert {each["lag"] for each in cluster.rows()} == {0}


@pytest.mark.parametrize("form", FORMATS)
def test_the_status_is_had_by_the_name_server_alone(cluster: Cluster, form: str) -> None:
    cluster.until(
        lambda: cluster.run("admin", "getBrokerEpoch", "-b", "broker-a").stdout.count("#brokerId") == 2
    )
    done = cluster.run("status", "--format", form)
    assert done.exit_code == 0
    assert all(address in done.stdout for address in cluster.brokers)


def test_a_healthy_cluster_is_exit_code_0_and_a_set_that_is_not_there_1(cluster: Cluster) -> None:
    words = ("admin", "health", "-a", cluster.controller, "--set")
    done = replispec(*words, "broker-a")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "healthy")
    done = replispec(*words, "broker-x")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "unhealthy")
    assert "FAULT  broker-x: no controller knows this broker set" in done.stdout


@pytest.mark.parametrize(
    "words",
    [
        ("getSyncStateSet", "-a", "CONTROLLER", "-b", "broker-a"),
        ("getBrokerEpoch", "-b", "broker-a"),
        ("getControllerMetaData", "-a", "CONTROLLER"),
        ("getControllerConfig", "-a", "CONTROLLER"),
        ("updateControllerConfig", "-a", "CONTROLLER", "-k", "electMasterMaxRetryCount", "-v", "3"),
        ("haStatus", "-b", "BROKER"),
        ("haStatus", "-c", "DefaultCluster"),
        ("clusterList",),
        ("brokerStatus", "-b", "BROKER"),
        ("brokerStatus", "-c", "DefaultCluster"),
        ("rejoin", "--dry-run", "--broker", "BROKER", "--master", "BROKER"),
        (
            "electMaster",
            "-a",
            "CONTROLLER",
            "-bn",
            "broker-a",
            "-c",
            "DefaultCluster",
            "-b",
            "2",
            "--dry-run",
        ),
        ("cleanBrokerMetadata", "-a", "CONTROLLER", "-bn", "broker-a", "-l", "-b", "2", "--dry-run"),
    ],
)
def test_each_command_goes_well(cluster: Cluster, words: tuple[str, ...]) -> None:
    places = {"CONTROLLER": cluster.controller, "BROKER": cluster.brokers[0]}
    cluster.until(lambda: "broker-a" in cluster.run("admin", "clusterList").stdout)
    done = cluster.run("admin", *(places.get(each, each) for each in words))
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("getSyncStateSet", "-a", "127.0.0.1:1", "-b", "x"), r"127\.0\.0\.1:1: Connection refused"),
        (("getBrokerEpoch", "-b", "x"), r"no broker set x: there are broker-a"),
        (("haStatus", "-c", "x"), r"no cluster x: there are DefaultCluster"),
        (("haStatus",), r"no cluster \(-c\) or broker \(-b\) is named"),
        (("topicRoute", "-t", "x"), r"\S+ refuses: TOPIC_NOT_EXIST \(17\): nobody holds the topic x"),
        (
            ("electMaster", "-a", "CONTROLLER", "-bn", "broker-a", "-c", "C", "-b", "2"),
            r"broker-a of C: broker 2 becomes master.*: nobody is there to confirm it; --yes goes on without",
        ),
        (("cleanBrokerMetadata", "-a", "CONTROLLER", "-bn", "b", "-c", "C", "-b", "x"), r"-b x: numbers .*"),
        (("cleanBrokerMetadata", "-a", "CONTROLLER", "-bn", "b"), r"the cluster is needed \(-c\), or -l"),
        (("inspect", "."), r"\.: no store of a broker or learner"),
    ],
)
def test_what_cannot_be_had_is_one_line_and_exit_code_2(
    cluster: Cluster, words: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    cluster.until(lambda: "broker-a" in cluster.run("admin", "clusterList").stdout)
    told = [cluster.controller if each == "CONTROLLER" else each for each in words]
    done = replispec("admin", *told, cwd=tmp_path, environment={"NAMESRV_ADDR": cluster.name_server})
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(f"replispec: {said}\n", done.stderr), done.stderr


def test_a_store_of_a_running_broker_tells_whose_it_is(cluster: Cluster) -> None:
    folder = cluster.folder / "store-1"
    done = cluster.run("admin", "inspect", str(folder), "--format", "json")
    (row,) = json.loads(done.stdout)
    assert (done.exit_code, row["broker_name"], row["broker_id"], row["first"]) == (0, "broker-a", 1, 0)
    assert [each["epoch"] for each in row["epochs"]] == [1]
    told = cluster.run("admin", "rejoin", "--dry-run", "--store", str(folder), "--master", cluster.brokers[0])
    assert told.exit_code == 0
    assert "would be cut:    nothing" in told.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_given_a_script_that_names_the_command(shell: str) -> None:
    done = CliRunner().invoke(command_line, ["completion", shell], prog_name="replispec")
    assert done.exit_code == 0
    assert "_REPLISPEC_COMPLETE" in done.output


def test_commands_and_options_are_completed() -> None:
    words = {"_REPLISPEC_COMPLETE": "bash_complete", "COMP_WORDS": "replispec admin getS", "COMP_CWORD": "2"}
    done = subprocess.run(command(), env={**os.environ, **words}, capture_output=True, text=True, check=False)
    assert "getSyncStateSet" in done.stdout


def test_zz_the_master_is_replaced_when_that_is_confirmed(cluster: Cluster) -> None:
    done = cluster.run(
        *("admin", "electMaster", "-a", cluster.controller, "-b", "2", "-bn", "broker-a"),
        *("-c", "DefaultCluster", "--yes"),
    )
    assert done.exit_code == 0
    assert f"#BrokerMasterAddr\t{cluster.brokers[1]}\n#MasterEpoch\t2\n" in done.stdout
    cluster.until(lambda: [each["role"] for each in cluster.rows()] == ["replica", "master"])


# What takes long to import and is of no use to a question: half of a call's time was the start.
HEAVY = ("numpy", "pyarrow", "rich", "jinja2", "betterproto", "google.protobuf", "zipfile", "multiprocessing")


@pytest.mark.parametrize(
    "words",
    [("status", "127.0.0.1:1", "--set", "x"), ("admin", "getBrokerEpoch", "-n", "127.0.0.1:1", "-b", "x")],
)
def test_a_call_loads_what_it_needs_and_nothing_else(words: tuple[str, ...]) -> None:
    source = (
        "import sys\n"
        "from replispec.cli.main import main\n"
        "try:\n    main()\n"
        f"finally:\n    print([each for each in {HEAVY} if each in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", source, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "[]\n"), done.stderr
