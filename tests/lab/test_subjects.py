"""The command of the subjects: usage, the ready line, nothing left behind. No JVM: java is a fake."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab.cluster import STATE_FILE
from lab.pinned import CACHE_VARIABLE
from lab.rocketmq.fetch import ARTEFACTS, pins
from lab.subjects.registry import subjects
from tests.house.tree import ROOT

NAMES = list(subjects())
APACHE = [name for name in NAMES if name.startswith("apache-")]
NAME = "apache-5.4.0"
FAKE = Path(__file__).with_name("fake_java.py")
COMMAND = (sys.executable, "-m", "lab.subjects")
Done = subprocess.CompletedProcess[str]


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """An environment whose java is the fake one, with every jar of every release in its cache, all empty."""
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f'#!/bin/sh\nPYTHONPATH= exec "{sys.executable}" "{FAKE}" "$@"\n')
    java.chmod(0o755)
    for name in (path.stem for path in ARTEFACTS.glob("*.txt")):
        jars = tmp_path / "cache" / name
        jars.mkdir(parents=True)
        for jar in pins(name):
            (jars / jar).touch()
    return {
        **os.environ,
        "JAVA_HOME": str(java.parent.parent),
        CACHE_VARIABLE: str(tmp_path / "cache"),
    }


@pytest.fixture
def run(machine: dict[str, str], tmp_path: Path) -> Iterator[Callable[..., Done]]:
    """Runs one command on a subject; what is started in `tmp_path / "target"` is stopped in the end."""

    def command(*arguments: object, name: str = NAME, **environment: str) -> Done:
        return subprocess.run(
            [*COMMAND, name, *map(str, arguments)],
            cwd=ROOT,
            env={**machine, **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    yield command
    state = tmp_path / "target" / STATE_FILE
    if state.exists():
        command("stop", tmp_path / "target", name=json.loads(state.read_text())["about"]["subject"])


def living(folder: Path) -> list[str]:
    """Names of the processes recorded in the folder that run."""
    recorded = json.loads((folder / STATE_FILE).read_text())["processes"]
    return [each["name"] for each in recorded if is_alive(each["pid"])]


def is_alive(pid: int) -> bool:
    """Whether the process runs; one that only waits for its parent does not."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def refused(done: Done, exit_code: int) -> str:
    """The one line with which a command failed."""
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (exit_code, "", 1), done
    return done.stderr


def test_every_release_that_is_judged_is_a_subject(run: Callable[..., Done]) -> None:
    assert run(name="list").stdout.splitlines() == [
        *("apache-5.0.0", "apache-5.1.0", "apache-5.1.1", "apache-5.1.4", "apache-5.4.0"),
        *("apache-5.5.0", "apache-5.5.1", "apache-jraft-5.4.0"),
        *("kafka-2.8.2", "kafka-2.8.2-at-0.11.0-IV1", "replispec"),
        *("replispec-kafka", "replispec-kafka-at-0.11.0-IV1"),
        *("replispec-metastore", "zookeeper-3.5.9", "zookeeper-3.6.4"),
    ]
    assert run("kinds").stdout.splitlines() == ["controller", "ha-master"]


def test_what_is_no_command_and_what_is_no_subject_are_refused(run: Callable[..., Done]) -> None:
    assert "usage: python -m lab.subjects" in refused(run(), 2)
    assert "usage: python -m lab.subjects" in refused(run("crush", "somewhere"), 2)
    assert "no subject 'apache-4': there are apache-5.0.0, " in refused(run("fetch", name="apache-4"), 2)


def test_a_kind_that_a_target_cannot_be_is_a_usage_error(run: Callable[..., Done], tmp_path: Path) -> None:
    assert "learner is none of its kinds" in refused(run("start", tmp_path / "target", "learner"), 2)
    assert not (tmp_path / "target").exists()


def test_a_folder_in_which_nothing_was_started_is_told_apart(
    run: Callable[..., Done], tmp_path: Path
) -> None:
    for action in ("crash", "stop", "reset"):
        assert "nothing was ever started" in refused(run(action, tmp_path / "elsewhere"), 1)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("name", APACHE)
def test_a_missing_jar_is_named_before_anything_starts(
    name: str, run: Callable[..., Done], tmp_path: Path
) -> None:
    kept_as = name.replace("jraft-", "")  # the same jars
    next((tmp_path / "cache" / kept_as).iterdir()).unlink()
    done = run("start", tmp_path / "target", name=name)
    assert f"not installed: run python -m lab.subjects {kept_as} fetch" in refused(done, 3)
    assert living(tmp_path / "target") == []


def test_a_missing_java_is_named_with_what_to_install(run: Callable[..., Done], tmp_path: Path) -> None:
    done = run("start", tmp_path / "target", JAVA_HOME=str(tmp_path / "nowhere"))
    assert "which holds no bin/java: install a JDK" in refused(done, 3)


def test_jars_that_are_not_the_pinned_ones_are_fetched_and_without_maven_that_is_told(
    run: Callable[..., Done], tmp_path: Path
) -> None:
    assert "mvn is missing: install Maven" in refused(run("fetch", PATH=str(tmp_path)), 3)


def test_a_maven_that_brings_other_jars_is_refused(run: Callable[..., Done], tmp_path: Path) -> None:
    maven = tmp_path / "tools" / "mvn"
    maven.parent.mkdir()
    maven.write_text(
        '#!/bin/sh\nfor each; do case $each in -DoutputDirectory=*) mkdir -p "${each#*=}"; esac; done\n'
    )
    maven.chmod(0o755)
    done = run("fetch", PATH=f"{maven.parent}{os.pathsep}{os.environ['PATH']}")
    assert "137 of 137 jars are not the pinned ones" in refused(done, 1)


def test_a_controller_says_where_it_is_and_is_gone_after_stop(
    run: Callable[..., Done], tmp_path: Path
) -> None:
    folder = tmp_path / "target"
    done = run("start", folder)
    assert done.returncode == 0, done
    ready = json.loads(done.stdout)
    assert {key: ready[key] for key in ("kind", "implementation", "release", "speaks")} == {
        "kind": "controller",
        "implementation": "apache",
        "release": "5.4.0",
        "speaks": "5.4.0",
    }
    host, _, port = ready["target"].partition(":")
    assert (host, 12_000 <= int(port) <= 21_900) == ("127.0.0.1", True)
    assert [is_alive(pid) for pid in ready["pids"]] == [True]
    assert "already runs" in refused(run("start", folder), 1)
    assert run("stop", folder).returncode == 0
    assert [is_alive(pid) for pid in ready["pids"]] == [False]


def test_a_crashed_controller_comes_back_on_its_port_with_its_data_and_a_reset_one_without(
    run: Callable[..., Done], tmp_path: Path
) -> None:
    folder = tmp_path / "target"
    first = json.loads(run("start", folder).stdout)
    kept = folder / "data" / "kept"
    kept.touch()
    assert run("crash", folder).returncode == 0
    assert living(folder) == []
    assert "no controller runs" in refused(run("crash", folder), 1)
    second = json.loads(run("start", folder).stdout)
    assert (second["target"], kept.exists()) == (first["target"], True)
    third = json.loads(run("reset", folder).stdout)
    assert (third["target"], kept.exists()) == (first["target"], False)
    assert not set(first["pids"]) & set(second["pids"]) & set(third["pids"])


def test_a_master_is_given_epochs_until_there_are_three(run: Callable[..., Done], tmp_path: Path) -> None:
    """One of the fake broker's restarts adds none: what counts is what it says of its epochs."""
    done = run("start", tmp_path / "target", "ha-master")
    assert done.returncode == 0, done
    ready = json.loads(done.stdout)
    assert [entry["epoch"] for entry in ready["epochList"]] == [1, 3, 4]
    assert ready["brokerName"] == "broker-a"
    addresses = [ready[name] for name in ("target", "controller", "broker", "nameserver")]
    assert len({address.partition(":")[2] for address in addresses}) == 4
    assert len(living(tmp_path / "target")) == len(ready["pids"]) == 3
    assert run("crash", tmp_path / "target").returncode == 0
    assert living(tmp_path / "target") == ["nameserver", "controller"]


def test_a_process_that_ends_at_its_start_takes_the_others_with_it(
    run: Callable[..., Done], tmp_path: Path
) -> None:
    done = run("start", tmp_path / "target", "ha-master", FAKE_JAVA="BrokerStartup exits")
    assert "broker has ended: it does not like its settings" in refused(done, 1)
    assert living(tmp_path / "target") == []
    recorded = json.loads((tmp_path / "target" / STATE_FILE).read_text())["processes"]
    assert [each["name"] for each in recorded] == ["nameserver", "controller", "broker"]


def test_an_interrupted_start_leaves_nothing_behind(
    machine: dict[str, str], run: Callable[..., Done], tmp_path: Path
) -> None:
    folder, pipe = tmp_path / "target", tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(
        [*COMMAND, NAME, "start", folder],
        cwd=ROOT,
        env={**machine, "FAKE_JAVA": "ControllerStartup mute", "FAKE_JAVA_PIPE": str(pipe)},
        stderr=subprocess.PIPE,
        text=True,
    ) as starting:
        assert pipe.read_text() == "it runs"
        assert living(folder) == ["controller"]
        assert "another command is at work" in refused(run("stop", folder), 1)
        starting.send_signal(signal.SIGTERM)
        assert starting.stderr is not None
        assert "interrupted; what had been started is ended" in starting.stderr.read()
        assert starting.wait() == 130
    assert living(folder) == []


def test_only_the_process_that_was_started_is_signalled(run: Callable[..., Done], tmp_path: Path) -> None:
    """A pid that went to somebody else: the recorded moment of its start is another."""
    folder = tmp_path / "target"
    assert run("start", folder).returncode == 0
    state = json.loads((folder / STATE_FILE).read_text())
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as stranger:
        held = {**state, "processes": [{**state["processes"][0], "pid": stranger.pid}]}
        (folder / STATE_FILE).write_text(json.dumps(held))
        assert run("stop", folder).returncode == 0
        assert stranger.poll() is None
        stranger.kill()
    (folder / STATE_FILE).write_text(json.dumps(state))
