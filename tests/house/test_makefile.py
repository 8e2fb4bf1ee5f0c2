"""What a target of the Makefile asks of a machine before it does anything."""

import os
import re
import subprocess

import pytest

from tests.house.tree import ROOT

TARGETS = re.findall(r"^([a-z][a-z-]*):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE)
# They start Spark or Apache RocketMQ, or tests that do.
NEED_A_JDK = {
    *("demo", "demo-replay", "test", "check", "test-full", "mutants"),
    *(
        "attempts",
        "hosts",
        "interop",
        "interop-kafka",
        "bench-roles",
        "bench-cluster",
        "bench-group",
        "bench-kafka",
        "bench-queues",
    ),
}


def _demands_a_jdk(*arguments: str) -> bool:
    """Whether `make` would look for a JDK, before anything else."""
    # As from a shell: a make that runs these tests hands its own flags and variables down.
    shell = {"PATH": os.environ["PATH"]}
    command = ["make", "--dry-run", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=shell, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    demanding = [number for number, line in enumerate(lines) if ".ci/prerequisites jdk" in line]
    assert demanding in ([], [0]), "asked for a JDK after something else was done"
    return bool(demanding)


@pytest.mark.parametrize("target", TARGETS)
def test_only_what_starts_spark_or_java_asks_for_a_jdk(target: str) -> None:
    assert _demands_a_jdk(target) == (target in NEED_A_JDK)


def test_some_tests_by_name_ask_for_no_jdk() -> None:
    assert not _demands_a_jdk("check", "ARGS=tests/controller")
