"""`replispec controller` and its like: configurations that cannot be used, and help that teaches."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from replispec.cli.main import command_line
from replispec.cli.roles import EXAMPLE_FILES
from replispec.runtime.configuration import parse
from replispec.wire.rocketmq.parameters import ROLES as OF_ROCKETMQ
from replispec.wire.zookeeper.parameters import ROLES as OF_ZOOKEEPER
from tests.cli.command import command, replispec

ROLES = {**OF_ROCKETMQ, **OF_ZOOKEEPER}


@pytest.mark.parametrize("role", ROLES)
def test_the_file_that_the_help_shows_is_enough_and_has_no_notes(role: str) -> None:
    settings = parse("\n".join(EXAMPLE_FILES[role]), ROLES[role])
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


def test_a_role_says_where_it_listens_and_ends_on_sigterm(tmp_path: Path) -> None:
    tap = tmp_path / "tap.pcap"
    arguments = ["nameserver", "--set", "listenPort=0", "--set", f"tapFile={tap}"]
    process = subprocess.Popen(
        command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    try:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        assert ready["pid"] == process.pid
        host, _, port = ready["roles"]["nameserver"]["nameserver"].rpartition(":")
        with socket.create_connection((host, int(port)), timeout=30) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert connection.recv(1) == b""
        taken = replispec("nameserver", "--set", f"listenPort={port}")
        process.send_signal(signal.SIGTERM)
        out, errors = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (process.returncode, out) == (0, "")
    (line,) = [json.loads(each) for each in errors.splitlines() if '"peer dropped"' in each]
    assert (line["level"], line["role"]) == ("warning", "nameserver")
    assert tap.stat().st_size > 100
    assert taken.returncode == 1
    assert f"127.0.0.1:{port}" in taken.stderr
