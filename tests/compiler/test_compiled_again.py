"""A process that compiles a specification again runs no program for what it knows, and reads what is new."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from replispec.compiler.generate import generate

SPEC = Path(__file__).parents[2] / "spec"


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Modules that are run as programs, as they are."""
    started: list[str] = []
    run = subprocess.run

    def counted(command: list[str], *rest: Any, **more: Any) -> Any:
        started.append(command[2])
        return run(command, *rest, **more)

    monkeypatch.setattr(subprocess, "run", counted)
    return started


def test_the_same_specification_elsewhere_runs_no_program_and_gives_the_same(
    programs: list[str], tmp_path: Path
) -> None:
    first = generate(SPEC)
    programs.clear()
    shutil.copytree(SPEC, tmp_path / "spec")
    assert generate(tmp_path / "spec") == first
    assert programs == []


def test_what_was_edited_is_compiled_anew(programs: list[str], tmp_path: Path) -> None:
    first = generate(SPEC)
    programs.clear()
    shutil.copytree(SPEC, tmp_path / "spec")
    proto = next((tmp_path / "spec" / "proto" / "replispec" / "adapter").rglob("*.proto"))
    proto.write_text(proto.read_text("utf-8").replace("// ", "// Edited: ", 1), "utf-8")
    changed = generate(tmp_path / "spec")
    assert "grpc_tools.protoc" in programs
    assert {name for name in first if changed[name] != first[name]} != set()
