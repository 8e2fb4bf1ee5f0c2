"""Running tshark with the generated dissector, and reading what it says of each packet."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DISSECTOR = ROOT / "generated/wireshark/rocketmq.lua"
PROTOCOLS = ("rocketmq", "rocketmq_ha", "rocketmq_log")
# Off by default, as it costs memory: without it tshark gives up a stream whose packets were swapped.
PREFERENCES = ("tcp.reassemble_out_of_order:TRUE",)


@dataclass(slots=True)
class Item:
    """One line of the packet's tree: the name of its filter, its value, the lines below it."""

    name: str
    value: str = ""
    items: list[Item] = field(default_factory=list)

    def walk(self) -> Iterator[Item]:
        """The line and all below it, top down."""
        yield self
        for item in self.items:
            yield from item.walk()

    def values(self, name: str) -> list[str]:
        """The values of the lines of this name, at any depth but not inside another protocol."""
        found = []
        for item in self.items:
            if item.name == name:
                found.append(item.value)
            if item.name not in PROTOCOLS:
                found += item.values(name)
        return found

    def value_of(self, name: str) -> str | None:
        """The only value of this name; None when there is none."""
        found = self.values(name)
        assert len(found) <= 1, f"{name} occurs {len(found)} times"
        return found[0] if found else None

    def below(self, name: str) -> list[Item]:
        """All lines of this name, at any depth."""
        return [item for item in self.walk() if item is not self and item.name == name]


def run_tshark(
    capture: Path,
    home: Path,
    *arguments: str,
    dissector: Path = DISSECTOR,
    preferences: Sequence[str] = (),
) -> str:
    """What tshark prints. Fails when it ends with an error or complains of the dissector.

    `home` replaces the folder of the user's settings, which must not matter.
    """
    command = ["tshark", "-n", "-X", f"lua_script:{dissector}", "-r", str(capture)]
    for preference in (*PREFERENCES, *preferences):
        command += ["-o", preference]
    environment = {**os.environ, "WIRESHARK_CONFIG_DIR": str(home), "LC_ALL": "C.UTF-8"}
    done = subprocess.run([*command, *arguments], capture_output=True, check=False, env=environment)
    complaints = done.stderr.decode("utf-8", "replace").splitlines()
    said = [line for line in complaints if "Running as user" not in line]
    assert (done.returncode, said) == (0, [])
    output = done.stdout.decode("utf-8", "replace")
    assert "Lua Error" not in output
    assert "Dissector bug" not in output
    return output


def packets(
    capture: Path,
    home: Path,
    *,
    dissector: Path = DISSECTOR,
    preferences: Sequence[str] = (),
    protocols: Sequence[str] = PROTOCOLS,
) -> dict[int, list[Item]]:
    """Number of a packet from 1 -> the frames that end in it, each as a tree; other packets are left out."""
    shown = run_tshark(
        capture,
        home,
        *("-T", "json", "-J", f"frame {' '.join(protocols)}", "-Y", " or ".join(protocols)),
        dissector=dissector,
        preferences=preferences,
    )
    found: dict[int, list[Item]] = {}
    for packet in json.loads(shown, object_pairs_hook=_items):
        (source,) = (item for item in packet if item.name == "_source")
        (layers,) = source.items
        (number,) = layers.values("frame.number")
        found[int(number)] = [item for item in layers.items if item.name in protocols]
    return found


def _items(pairs: list[tuple[str, Any]]) -> list[Item]:
    """The members of one JSON object. What is below `x` stands after it as `x_tree`."""
    found: list[Item] = []
    for name, value in pairs:
        if found and name == f"{found[-1].name}_tree":
            found[-1].items = value
        elif isinstance(value, list):
            found.append(Item(name, "", value))
        else:
            found.append(Item(name, str(value)))
    return found
