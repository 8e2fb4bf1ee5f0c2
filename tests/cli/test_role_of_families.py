"""Which family's controller a file means: the one that is configured in it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli.command import command


def printed(*arguments: str) -> subprocess.CompletedProcess[str]:
    """What a controller is configured with."""
    words = command("controller", "--print-config", *arguments)
    return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("", "controllerStorePath"),
        ("listenPort=9878\nstorePathRootDir=store\n", "controllerStorePath"),
        ("broker.id=1\nzookeeper.connect=127.0.0.1:2181\n", "zookeeper.connect"),
        ("broker.id=1\nzookeeper.connect=127.0.0.1:2181\nlog.dirs=x\nlisteners=y\n", "zookeeper.connect"),
    ],
)
def test_a_file_tells_whose_controller_it_is(tmp_path: Path, text: str, name: str) -> None:
    file = tmp_path / "controller.properties"
    file.write_text(text, "utf-8")
    done = printed("-c", str(file))
    assert done.returncode == 0
    assert name in {line.partition("=")[0] for line in done.stdout.splitlines()}


def test_who_names_a_family_is_told_what_it_lacks() -> None:
    done = printed("--family", "kafka")
    assert done.returncode != 0
    assert "broker.id" in done.stderr
