"""`replispec capture` prints a command that captures what a replay needs."""

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.command import replispec


def filter_of(shown: str) -> str:
    command = shlex.split(shown)
    return command[command.index("-f") + 1]


def test_ports_that_are_not_given_are_those_of_the_specification() -> None:
    shown = replispec("capture", "--out", "t.pcapng")
    assert (
        filter_of(shown.stdout)
        == "tcp and (port 9876 or port 9878 or port 10909 or port 10911 or port 10912)"
    )
    assert "port 10912: broker: replication" in shown.stderr


def test_ports_of_a_broker_follow_from_its_listen_port_and_hosts_narrow_the_filter() -> None:
    arguments = ("--broker", "20911", "--name-server", "1", "--controller", "2", "--ha-port", "3")
    shown = replispec("capture", "--out", "t.pcapng", *arguments, "--hosts", "a.example, ::1", "-q")
    ports = " or ".join(f"port {port}" for port in (1, 2, 3, 20909, 20911, 20912))
    assert filter_of(shown.stdout) == f"tcp and ({ports}) and (host a.example or host ::1)"
    assert (shown.returncode, shown.stderr) == (0, "")


def test_both_tools_get_a_ring_of_the_same_size() -> None:
    ring = ("--out", "t.pcap", "--file-mib", "10", "--files", "3", "--buffer-mib", "8", "-q")
    dumpcap = shlex.split(replispec("capture", *ring).stdout)
    tcpdump = shlex.split(replispec("capture", *ring, "--tool", "tcpdump").stdout)
    assert [dumpcap[at] for at in range(5, 11)] == ["-B", "8", "-b", "filesize:10240", "-b", "files:3"]
    assert [tcpdump[at] for at in range(5, 12)] == ["-n", "-B", "8192", "-C", "10", "-W", "3"]
    assert dumpcap[:5] == ["dumpcap", "-i", "any", "-s", "0"]


@pytest.mark.parametrize("written", ["fe80::1", "[fe80::1]", "fe80::1%eth0", " [fe80::1%eth0.7] "])
def test_an_ipv6_host_is_one_in_every_form(written: str) -> None:
    shown = replispec("capture", "--out", "t.pcapng", "--hosts", f"{written},10.0.0.1")
    assert filter_of(shown.stdout).endswith("and (host fe80::1 or host 10.0.0.1)")


@pytest.mark.parametrize("host", ["a) or (tcp", "fe80::1%eth0) or (tcp", "[a", "a%b"])
def test_a_host_that_would_change_the_filter_is_refused(host: str) -> None:
    shown = replispec("capture", "--out", "t.pcapng", "--hosts", host)
    assert shown.returncode == 2
    assert "no host name" in shown.stderr
    assert shown.stdout == ""


def test_a_missing_tool_is_one_line_that_says_what_to_do(tmp_path: Path) -> None:
    shown = replispec("capture", "--out", "t.pcapng", "--run", "-q", environment={"PATH": str(tmp_path)})
    assert shown.returncode == 2
    assert shown.stderr.startswith("replispec: dumpcap is not on this machine: install it")
    assert shown.stderr.count("\n") == 1


@pytest.mark.skipif(shutil.which("dumpcap") is None, reason="dumpcap is not installed")
def test_dumpcap_understands_the_filter() -> None:
    chosen = filter_of(replispec("capture", "--out", "t.pcapng", "--hosts", "10.0.0.1,::1").stdout)
    done = subprocess.run(
        ["dumpcap", "-d", "-f", chosen], capture_output=True, text=True, check=False, timeout=60
    )
    if "permission" in done.stderr.lower():
        pytest.skip("not permitted to look at interfaces")
    assert done.returncode == 0, done.stderr
