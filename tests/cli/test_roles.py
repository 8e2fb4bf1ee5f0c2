"""`replispec controller` and its like: configurations that cannot be used, and help that teaches."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from replispec.cli.main import command_line
from replispec.cli.roles import EXAMPLE_FILES
from replispec.runtime.configuration import ROLES, parse
from tests.cli.command import replispec


@pytest.mark.parametrize("role", ROLES)
def test_the_file_that_the_help_shows_is_enough_and_has_no_notes(role: str) -> None:
    settings = parse("\n".join(EXAMPLE_FILES[role]), role)  # type: ignore[arg-type]
    assert settings.notes == ()
    shown = CliRunner().invoke(command_line, [role, "--help"]).output
    assert all(line in shown for line in EXAMPLE_FILES[role])


def test_a_bad_value_ends_with_code_2_and_one_line(tmp_path: Path) -> None:
    file = tmp_path / "controller.properties"
    file.write_text("listenPort=abc\n")
    done = replispec("controller", "-c", str(file))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"Error: {file}: listenPort=abc: allowed is a port, 0 to 65535\n"


@pytest.mark.parametrize("arguments", [("--set", "listenPort"), ("--set", "nonsense=1"), ("-c", "not-there")])
def test_a_wrong_command_line_ends_with_code_2(arguments: tuple[str, ...]) -> None:
    assert replispec("nameserver", *arguments).returncode == 2


def test_print_config_shows_what_holds_and_starts_nothing(tmp_path: Path) -> None:
    file = tmp_path / "nameserver.properties"
    file.write_text("listenPort=1\n")
    done = replispec("nameserver", "-c", str(file), "--set", "logLevel=DEBUG", "--print-config")
    assert done.returncode == 0
    assert {"listenPort=1", "logLevel=DEBUG", "bindAddress=127.0.0.1"} <= set(done.stdout.splitlines())
