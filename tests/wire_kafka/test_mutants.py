"""Whatever is changed in the specification of Kafka's bytes, some golden message no longer holds.

A copy of the specification gets another size, order or version; the codecs that are made of it are tried on
the golden bytes in a process of their own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from replispec.compiler.generate import generate, write
from tests.compiler.specification import ROOT, SPEC

FOLDERS = (
    "proto/replispec/options",
    "parameters/kafka",
    *(f"{part}/kafka" for part in ("proto/replispec", "clauses", "statemachines", "systems", "vectors")),
)
WITNESS = """
import json
from replispec.runtime.primitives.errors import ProtocolError
from tests.wire_kafka.forms import golden

def holds(example):
    try:
        read = example.kind.decode(example.data, **example.given)
        return read == example.message and example.message.encode(**example.given) == example.data
    except (ProtocolError, TypeError):
        return False

print(json.dumps([example.name for example in golden() if not holds(example)]))
"""
# File, what is changed in it, and how many golden messages notice at least.
MUTANTS = {
    "a shorter number": (
        "design.proto",
        "zk_version        = 6 [(wire) = {size: 8",
        "zk_version        = 6 [(wire) = {size: 4",
        2,
    ),
    "a field one version too early": (
        "design.proto",
        'size: 8  when: {field: "version"  minimum: 2}',
        'size: 8  when: {field: "version"  minimum: 1}',
        1,
    ),
    "a list of shorter numbers": (
        "design.proto",
        "repeated int32 isr       = 5 [(wire) = {count: 4  size: 4",
        "repeated int32 isr       = 5 [(wire) = {count: 4  size: 2",
        2,
    ),
    "a longer length": ("requests.proto", "{prefix: 2  nullable: true}", "{prefix: 4  nullable: true}", 2),
}


def broken(spec: Path, generated: Path) -> list[str]:
    """Names of the golden messages that do not hold for the codecs of this specification."""
    # Framings are nobody's alone: of them the module of all families counts, which others' codecs ask, too.
    files = {path: data for path, data in generate(spec).items() if not path.endswith("/framings.py")}
    write(files, generated)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(generated), str(ROOT)])}
    command = [sys.executable, "-c", WITNESS]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    names: list[str] = json.loads(done.stdout)
    return names


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """A copy of what belongs to Kafka."""
    for folder in FOLDERS:
        shutil.copytree(SPEC / folder, tmp_path / "spec" / folder)
    declared = tmp_path / "spec" / "families"
    declared.mkdir()
    shutil.copy(SPEC / "families" / "kafka.yaml", declared)
    return tmp_path / "spec"


def test_the_specification_as_it_is_breaks_nothing(spec: Path, tmp_path: Path) -> None:
    assert broken(spec, tmp_path / "generated") == []


@pytest.mark.parametrize(("file", "old", "new", "least"), MUTANTS.values(), ids=MUTANTS)
def test_a_mutant_is_noticed(spec: Path, tmp_path: Path, file: str, old: str, new: str, least: int) -> None:
    path = spec / "proto/replispec/kafka/v1" / file
    text = path.read_text("utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), "utf-8")
    assert len(broken(spec, tmp_path / "generated")) >= least
