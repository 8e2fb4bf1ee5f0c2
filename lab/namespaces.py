"""Hosts of a network of their own: one network namespace each, all on one bridge, some behind a translation.

    HOST ── bridge ── translator ── HIDDEN HOST

Only the names of the namespaces stand outside of them, each with the pid of its maker in it: what a killed
run left behind is removed by the next one. Needs root, `ip` and `nft` (Linux).
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import re
import shutil
import socket
import struct
import subprocess
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from lab.errors import LabError, NotInstalledError

PREFIX = "replispec"
NAMED = re.compile(rf"{PREFIX}-(\d+)-[a-z0-9-]+")
WIRE, TRANSLATOR = "wire", "translator"
BRIDGE, LINK, INSIDE = "bridge0", "eth0", "eth1"
# Reached from nowhere else: nothing leads out of the bridge.
OUTER, INNER = "10.99.0.{}", "192.168.77.{}"
# Which ports a hidden host's connections are given outside.
OUTER_PORTS = "40000-60000"
CLONE_NEWNET = 0x40000000
# Source: linux/sockios.h, linux/ethtool.h (ETHTOOL_STSO, ETHTOOL_STXCSUM).
SIOCETHTOOL, WITHOUT_SEGMENTATION, WITHOUT_CHECKSUMS = 0x8946, 0x1F, 0x17
SELF = Path("/proc/self/ns/net")
FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")
PROGRAMS = {"ip": "iproute2", "nft": "nftables", "nsenter": "util-linux"}
LIBC = ctypes.CDLL(None, use_errno=True)


class Namespaces:
    """Hosts by name, in this order: .11, .12 and so on outside. The hidden one has another address inside.

    Leaving the block removes all of them. Raises NotInstalledError, LabError.
    """

    def __init__(self, hosts: Sequence[str], hidden: str) -> None:
        self.hosts = tuple(hosts)
        self.hidden = hidden

    def __enter__(self) -> Self:
        _check()
        remove_abandoned()
        try:
            self._make()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._remove()

    def address(self, host: str) -> str:
        """How all others reach a host."""
        return OUTER.format(11 + self.hosts.index(host))

    def own_address(self, host: str) -> str:
        """What its own interface is called."""
        return INNER.format(2) if host == self.hidden else self.address(host)

    def command(self, place: str, command: Sequence[str]) -> list[str]:
        """The same command in a host, or in `wire` or `translator`."""
        return ["nsenter", f"--net=/run/netns/{_name(place)}", "--", *command]

    @contextmanager
    def inside(self, place: str) -> Iterator[None]:
        """This thread's new sockets and processes are the host's while the block lasts."""
        with SELF.open("rb") as before, Path(f"/run/netns/{_name(place)}").open("rb") as there:
            _enter(there.fileno())
            try:
                yield
            finally:
                _enter(before.fileno())

    def drop(self, port: int) -> None:
        """From now on the translator passes no packet of this port on, either way."""
        self._rules(f"""table ip cut {{
            chain forward {{
                type filter hook forward priority 0;
                tcp dport {port} drop
                tcp sport {port} drop
            }}
        }}""")

    def pass_on(self) -> None:
        """All packets again."""
        self._rules("delete table ip cut")

    def _rules(self, text: str) -> None:
        _run(self.command(TRANSLATOR, ["nft", "-f", "-"]), text)

    def _make(self) -> None:
        for place in (WIRE, TRANSLATOR, *self.hosts):
            _run(["ip", "netns", "add", _name(place)])
            _in(place, "link", "set", "lo", "up")
        _in(WIRE, "link", "add", BRIDGE, "type", "bridge")
        _in(WIRE, "link", "set", BRIDGE, "up")
        for number, host in enumerate(self.hosts):
            own = TRANSLATOR if host == self.hidden else host
            _join(own, LINK, WIRE, f"port{number}")
            _in(WIRE, "link", "set", f"port{number}", "master", BRIDGE)
            _in(own, "address", "add", f"{self.address(host)}/24", "dev", LINK)
        self._hide()

    def _hide(self) -> None:
        _join(self.hidden, LINK, TRANSLATOR, INSIDE)
        _in(TRANSLATOR, "address", "add", f"{INNER.format(1)}/24", "dev", INSIDE)
        _in(self.hidden, "address", "add", f"{INNER.format(2)}/24", "dev", LINK)
        _in(self.hidden, "route", "add", "default", "via", INNER.format(1))
        with self.inside(TRANSLATOR):
            _as_a_card(INSIDE)
        with self.inside(TRANSLATOR):
            FORWARDING.write_text("1")
        outer, inner = self.address(self.hidden), INNER.format(2)
        self._rules(f"""table ip translation {{
            chain before {{
                type nat hook prerouting priority dstnat;
                iifname {LINK} ip daddr {outer} dnat to {inner}
            }}
            chain after {{
                type nat hook postrouting priority srcnat;
                oifname {LINK} ip saddr {inner} ip protocol tcp snat to {outer}:{OUTER_PORTS} fully-random
            }}
        }}""")

    def _remove(self) -> None:
        for place in (*self.hosts, TRANSLATOR, WIRE):
            _forget(_name(place))


def _as_a_card(interface: str) -> None:
    """What leaves here is in segments and with checksums, as on a cable: the kernel leaves both to the
    network card, which a link between namespaces is not."""
    with socket.socket() as any_socket:
        for command in (WITHOUT_SEGMENTATION, WITHOUT_CHECKSUMS):
            value = array("I", (command, 0))
            asked = struct.pack("16sP", interface.encode(), value.buffer_info()[0])
            fcntl.ioctl(any_socket, SIOCETHTOOL, asked)


def remove_abandoned() -> None:
    """Remove the namespaces of makers that run no more."""
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False).stdout
    for line in listed.splitlines():
        found = NAMED.fullmatch(line.split()[0])
        if found is not None and not Path(f"/proc/{found[1]}").exists():
            _forget(found[0])


def _check() -> None:
    """Raises NotInstalledError with what to install, LabError without the right to make namespaces."""
    for program, package in PROGRAMS.items():
        if shutil.which(program) is None:
            raise NotInstalledError(
                f"{program} is missing: install it (Debian, Ubuntu: apt-get install {package})"
            )
    if os.geteuid() != 0:
        raise LabError("network namespaces need root: run it as root, or in a container of your own")


def _name(place: str) -> str:
    return f"{PREFIX}-{os.getpid()}-{place}"


def _in(place: str, *command: str) -> None:
    _run(["ip", "-n", _name(place), *command])


def _join(place: str, name: str, other: str, other_name: str) -> None:
    """A link between two places, up at both ends."""
    peer = ("peer", "name", other_name, "netns", _name(other))
    _in(place, "link", "add", name, "type", "veth", *peer)
    _in(place, "link", "set", name, "up")
    _in(other, "link", "set", other_name, "up")


def _run(command: Sequence[str], text: str | None = None) -> None:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["it said nothing"])[0]
        raise LabError(f"{' '.join(command)}: {said}")


def _forget(name: str) -> None:
    subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


def _enter(namespace: int) -> None:
    if LIBC.setns(namespace, CLONE_NEWNET):
        raise LabError(f"a network namespace cannot be entered: {os.strerror(ctypes.get_errno())}")
