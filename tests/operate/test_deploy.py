"""What is shipped for machines: units of systemd and the recipe of an image."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.house.tree import ROOMS, ROOT

UNITS = sorted((ROOT / "deploy/systemd").glob("*.service"))
RECIPE = (ROOT / "deploy/Containerfile").read_text()
STEPS = [
    (words[0], words[1])
    for words in (
        line.split(maxsplit=1)
        for line in re.sub(r"\\\n", " ", RECIPE).splitlines()
        if line and line[0] != "#"
    )
]
HARDENING = {
    "User": "replispec",
    "NoNewPrivileges": "true",
    "ProtectSystem": "strict",
    "StateDirectory": "replispec",
    "Restart": "on-failure",
    "RestartPreventExitStatus": "2",
    "LimitNOFILE": "65536",
    "CapabilityBoundingSet": "",
}


def test_every_role_has_a_unit() -> None:
    roles = ["broker", "controller", "learner", "nameserver"]
    assert [path.stem for path in UNITS] == [f"replispec-{role}" for role in roles]


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.stem)
def test_a_unit_runs_its_role_with_little_right(unit: Path) -> None:
    role = unit.stem.removeprefix("replispec-")
    settings = dict(re.findall(r"^(\w+)=(.*)$", unit.read_text(), re.MULTILINE))
    assert HARDENING.items() <= settings.items()
    assert settings["ExecStart"] == f"/opt/replispec/bin/replispec {role} -c /etc/replispec/{role}.properties"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not there")
@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.stem)
def test_systemd_finds_nothing_wrong_with_a_unit(unit: Path, tmp_path: Path) -> None:
    # It looks for the program, which is not installed here.
    copy = tmp_path / unit.name
    copy.write_text(unit.read_text().replace("/opt/replispec/bin/replispec", "/bin/true"))
    found = subprocess.run(
        ["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, check=False
    )
    assert (found.returncode, [line for line in found.stderr.splitlines() if unit.name in line]) == (0, [])


def test_the_image_begins_with_one_base_of_a_version() -> None:
    bases = {rest.split()[0] for name, rest in STEPS if name == "FROM"}
    assert len(bases) == 1
    assert re.fullmatch(r"docker\.io/library/python:\d+\.\d+\.\d+-slim-bookworm", bases.pop())


def test_the_image_copies_what_is_there_and_all_that_is_built() -> None:
    copied = [
        part for name, rest in STEPS if name == "COPY" and "--from" not in rest for part in rest.split()[:-1]
    ]
    assert [each for each in copied if not (ROOT / each).exists()] == []
    assert {room.partition("/")[0] for room in ROOMS} <= set(copied)
    assert {"pyproject.toml", "hatch_build.py", "constraints.txt"} <= set(copied)


def test_the_image_runs_without_privilege_and_knows_whether_the_cluster_answers() -> None:
    last = [name for name, _ in STEPS].index("FROM", 1)
    settings = dict(STEPS[last:])
    assert settings["USER"] == "10001"
    assert '"/opt/replispec/bin/replispec"' in settings["ENTRYPOINT"]
    command = shlex.split(settings["HEALTHCHECK"].partition("CMD ")[2])
    assert command == ["/opt/replispec/bin/replispec", "status", "||", "exit", "1"]
