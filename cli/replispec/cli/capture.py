"""`replispec capture`: the command that captures what a replay needs, and what its choices cost."""

from __future__ import annotations

import shlex
import shutil
import string
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from replispec.cli.failures import EXIT_UNUSABLE
from replispec.cli.family import Listeners, ports
from replispec.cli.places import NamedPath

EXAMPLES = """\b
Examples:
  replispec capture --out trace.pcapng
  replispec capture --broker 10911 --broker 10921 --controller 9878 --hosts 10.0.0.1,10.0.0.2 --out t.pcapng
  replispec capture --tool tcpdump --interface eth0 --file-mib 200 --files 50 --out trace.pcap
  sudo $(which replispec) capture --out trace.pcapng --run
"""
DUMPCAP, TCPDUMP = "dumpcap", "tcpdump"
INSTALL = {
    DUMPCAP: "install it (Debian: wireshark-common, Fedora: wireshark-cli), or use --tool tcpdump",
    TCPDUMP: "install it (its package is called tcpdump), or use --tool dumpcap",
}
KIB, MIB = 1024, 1024**2
# What can be in a name or an address: nothing that means something in a filter.
HOST_CHARACTERS = frozenset(string.ascii_letters + string.digits + ".:-_")
# What tcpdump's -C counts in.
MILLION = 10**6


@dataclass(frozen=True, slots=True)
class Ring:
    """What to capture where: `snap_length` bytes of each packet (0: all), a kernel buffer, and files that are
    written in turns, the oldest one again when there are as many."""

    interface: str
    snap_length: int
    buffer_mib: int
    file_mib: int
    files: int
    out: Path


def host_in(text: str) -> str:
    """The name or address of a host, as a filter has it: without brackets, and without a zone, which no
    packet holds."""
    host = text.strip()
    inside = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    address, _, zone = inside.partition("%")
    return address if ":" in address and set(zone) <= HOST_CHARACTERS else inside


def selection(heard: Mapping[int, str], hosts: Sequence[str]) -> str:
    """The filter for these ports, between any of these hosts and anybody; without hosts between all."""
    chosen = f"tcp and ({' or '.join(f'port {port}' for port in heard)})"
    return f"{chosen} and ({' or '.join(f'host {host}' for host in hosts)})" if hosts else chosen


def arguments(tool: str, ring: Ring, chosen: str) -> list[str]:
    """The command line."""
    common = [tool, "-i", ring.interface, "-s", str(ring.snap_length)]
    if tool == DUMPCAP:
        size, files = f"filesize:{ring.file_mib * KIB}", f"files:{ring.files}"
        return [
            *common,
            "-B",
            str(ring.buffer_mib),
            "-b",
            size,
            "-b",
            files,
            "-w",
            str(ring.out),
            "-f",
            chosen,
        ]
    millions = str(max(1, ring.file_mib * MIB // MILLION))
    buffer = ["-n", "-B", str(ring.buffer_mib * KIB)]
    return [*common, *buffer, "-C", millions, "-W", str(ring.files), "-w", str(ring.out), chosen]


def costs(ring: Ring, heard: Mapping[int, str], hosts: Sequence[str]) -> Iterator[str]:
    """What each choice means, a line each."""
    yield from (f"port {port}: {what}" for port, what in heard.items())
    if ring.snap_length:
        yield f"snaplen {ring.snap_length}: smaller files; what needs bytes behind it is judged unknown"
    else:
        yield "snaplen 0: whole packets, as a replay needs; files hold what producers sent, bodies too"
    yield f"buffer {ring.buffer_mib} MiB of kernel memory: less loses packets when the disk is slow"
    total = ring.files * ring.file_mib
    yield (
        f"ring of {ring.files} files of {ring.file_mib} MiB: {total} MiB of disk at most; what is older"
        " is lost, and connections that began there are read from the middle"
    )
    if ring.interface == "any":
        yield "interface any: loopback too; what passes two interfaces is there twice, and settled"
    if hosts:
        yield f"hosts {', '.join(hosts)}: only packets that one of them sends or receives"
    yield "filter by ports: it matches no fragments and nothing in tunnels; where there are such leave it out"
    yield "start it before the brokers: what was agreed before the first packet is unknown"
    yield "afterwards: replispec replay FILES --rotated --out result"


@click.command(epilog=EXAMPLES, short_help="Print or run the command that captures a cluster.")
@click.option(
    "--out",
    metavar="FILE",
    required=True,
    type=NamedPath(dir_okay=False, path_type=Path),
    help="Where to write; numbers or times are put behind the name.",
)
@click.option(
    "--name-server",
    "name_servers",
    type=click.IntRange(1, 65535),
    multiple=True,
    help="A port of a name server. May be repeated.",
)
@click.option(
    "--controller",
    "controllers",
    type=click.IntRange(1, 65535),
    multiple=True,
    help="A port of a controller. May be repeated.",
)
@click.option(
    "--broker",
    "brokers",
    type=click.IntRange(1, 65535),
    multiple=True,
    help="A broker's listenPort; its ports for VIP channels and replication follow from it. May be repeated.",
)
@click.option(
    "--ha-port",
    "ha_ports",
    type=click.IntRange(1, 65535),
    multiple=True,
    help="A haListenPort that does not follow from listenPort. May be repeated.",
)
@click.option("--hosts", default="", metavar="HOST,...", help="Only what these hosts send or receive.")
@click.option("--interface", default="any", show_default=True, help="Where to listen.")
@click.option(
    "--snap-length",
    type=click.IntRange(0, 262144),
    default=0,
    show_default=True,
    help="Bytes of each packet to keep; 0: all.",
)
@click.option(
    "--buffer-mib", type=click.IntRange(1, 2047), default=64, show_default=True, help="Kernel buffer, MiB."
)
@click.option(
    "--file-mib",
    type=click.IntRange(1, 1_000_000),
    default=512,
    show_default=True,
    help="Size of a file, MiB.",
)
@click.option(
    "--files",
    type=click.IntRange(2, 100_000),
    default=20,
    show_default=True,
    help="Files to keep; the oldest one is overwritten.",
)
@click.option(
    "--tool", type=click.Choice([DUMPCAP, TCPDUMP]), default=DUMPCAP, show_default=True, help="What captures."
)
@click.option("--run", "is_run", is_flag=True, help="Run it until Ctrl-C, instead of printing it.")
@click.option("--quiet", "-q", is_flag=True, help="Do not say what the choices cost.")
def capture(
    out: Path,
    name_servers: tuple[int, ...],
    controllers: tuple[int, ...],
    brokers: tuple[int, ...],
    ha_ports: tuple[int, ...],
    hosts: str,
    interface: str,
    snap_length: int,
    buffer_mib: int,
    file_mib: int,
    files: int,
    tool: str,
    is_run: bool,
    quiet: bool,
) -> int:
    """Print the dumpcap or tcpdump command that captures a cluster for `replispec replay`, a ring of files.

    Ports that are not given are the defaults of the parameters (`replispec explain listenPort`). What each
    choice costs is said on standard error; standard output has the command alone.
    """
    heard = ports(Listeners(name_servers, controllers, brokers, ha_ports))
    chosen = [host for host in map(host_in, hosts.split(",")) if host]
    bad = [host for host in chosen if not set(host) <= HOST_CHARACTERS]
    if bad:
        raise click.UsageError(f"{bad[0]!r} is no host name and no address")
    ring = Ring(interface, snap_length, buffer_mib, file_mib, files, out)
    if not quiet:
        for line in costs(ring, heard, chosen):
            click.echo(f"replispec: {line}", err=True)
    command = arguments(tool, ring, selection(heard, chosen))
    if not is_run:
        click.echo(shlex.join(command))
        return 0
    if shutil.which(tool) is None:
        click.echo(f"replispec: {tool} is not on this machine: {INSTALL[tool]}", err=True)
        return EXIT_UNUSABLE
    try:
        return EXIT_UNUSABLE if subprocess.run(command, check=False).returncode else 0
    except KeyboardInterrupt:
        return 0
