"""Counts a checkout, this one when none is named, so that two states can be compared.

    python -m tests.house.count [CHECKOUT] [--code 1001]

- Lines by room, modules that know a family (`families.py` says how), circles of imports.
- Places that one message touches (`places.py` has the rule).
- The way of a 1001 from socket to answer (`way.py`), and from packet to finding (`way_of_finding.py`): they
  need the checkout's environment (`make setup`).
"""

import argparse
import json
import os
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

from replispec.wire.rocketmq.controller import (
    AlterSyncStateSetRequest,
    AlterSyncStateSetResponse,
    SyncStateSet,
)
from tests.house.circles import circles, graph, of_packages
from tests.house.families import knows_a_family, of_a_family
from tests.house.places import names_of, naming
from tests.house.tree import LEFT_BEHIND, ROOT
from tests.replay.pcap_writer import pcap
from tests.replay.traffic import Traffic

BESIDE = ("lab", "benchmarks", "tests")
NOT_BY_PEOPLE = ("generated", "tests")
WAY = Path(__file__).with_name("way.py")
WAY_OF_FINDING = Path(__file__).with_name("way_of_finding.py")
WAY_S_MAXIMUM = 120


def python_files(folder: Path) -> Iterator[Path]:
    """Every Python file below a folder."""
    for path in sorted(folder.rglob("*.py")):
        if not LEFT_BEHIND.intersection(path.parts):
            yield path


def lines(paths: list[Path]) -> int:
    """How many lines files have together."""
    return sum(len(path.read_text().splitlines()) for path in paths)


def print_rooms(root: Path, rooms: tuple[str, ...]) -> None:
    """Modules and lines of each room, and modules that know a family although they are neutral."""
    print(f"{'room':<20} {'modules':>7} {'lines':>7} {'of families':>11} {'know a family':>13}")
    totals = [0, 0, 0, 0]
    for room in (*rooms, *BESIDE):
        paths = list(python_files(root / room))
        own = [path for path in paths if of_a_family(path.relative_to(root))]
        neutral = [] if room in NOT_BY_PEOPLE else [path for path in paths if path not in own]
        knowing = [path for path in neutral if any(knows_a_family(path.read_text()))]
        row = [len(paths), lines(paths), lines(own), len(knowing)]
        print(f"{room:<20} {row[0]:>7} {row[1]:>7} {row[2]:>11} {row[3]:>13}")
        if room not in NOT_BY_PEOPLE:
            totals = [total + each for total, each in zip(totals, row, strict=True)]
    print(f"{'written by people':<20} {totals[0]:>7} {totals[1]:>7} {totals[2]:>11} {totals[3]:>13}")


def print_circles(root: Path, rooms: tuple[str, ...]) -> None:
    """Circles of imports among modules and among packages."""
    modules: dict[str, Path] = {}
    for room in rooms:
        for path in python_files(root / room):
            inside = path.relative_to(root / room).with_suffix("").parts
            modules[".".join(inside[:-1] if inside[-1] == "__init__" else inside)] = path
    edges = graph(modules)
    for what, found in (("modules", edges), ("packages", of_packages(edges, modules))):
        groups = circles(found)
        print(f"circles of {what}: {len(groups)}")
        for group in groups:
            print(f"  {', '.join(group)}")


def print_places(root: Path, rooms: tuple[str, ...], code: int) -> None:
    """Files that name a message, by room: what is generated and what tests a subject stand apart."""
    names = names_of(root, code)
    found = {room: naming(root, room, names) for room in ("spec", *rooms, *BESIDE)}
    by_hand = {room: len(paths) for room, paths in found.items() if room not in NOT_BY_PEOPLE and paths}
    python = sum(each.suffix == ".py" for room in by_hand for each in found[room])
    print(f"places of {code} ({', '.join(names)})")
    each = ", ".join(f"{room} {count}" for room, count in by_hand.items())
    print(f"  by hand {sum(by_hand.values())}, of them Python {python}: {each}")
    print(f"  generated {len(found['generated'])}, tests {len(found['tests'])}")


def way(root: Path, script: Path = WAY, *more: str) -> list[tuple[str, str]]:
    """File and name of each function that a 1001 enters. Raises RuntimeError with what went wrong."""
    python = root / ".venv" / "bin" / "python"
    if not python.exists():
        raise RuntimeError("no environment: run `make setup` there")
    done = subprocess.run(
        [python, script, root, *more],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
        timeout=WAY_S_MAXIMUM,
    )
    (found,) = json.loads(done.stdout) if done.returncode == 0 else [done.stderr.strip()[-400:]]
    if isinstance(found, str):
        raise RuntimeError(found)
    return [(file, name) for file, name, _ in found]


def captured_1001() -> bytes:
    """A capture of one connection with one 1001 and its answer."""
    traffic = Traffic()
    link = traffic.connect("10.0.0.1", ("10.0.0.9", 9878))
    asked = traffic.request(
        link,
        AlterSyncStateSetRequest(broker_name="a", master_broker_id=1, master_epoch=1, invoke_time=0),
        SyncStateSet(broker_ids=[1, 2], sync_state_set_epoch=1),
    )
    answered = SyncStateSet(broker_ids=[1, 2], sync_state_set_epoch=2)
    traffic.answer(link, asked, AlterSyncStateSetResponse(new_sync_state_set_epoch=2), answered)
    return pcap(traffic.packets())


def print_way(what: str, root: Path, script: Path, *more: str) -> None:
    """Functions and modules of ours on the way."""
    try:
        entered = way(root, script, *more)
    except RuntimeError as error:
        print(f"way of a 1001 {what}: {error}")
        return
    generated = [file for file, _ in entered if file.startswith("generated/")]
    files = {file for file, _ in entered}
    print(f"way of a 1001 {what}: {len(entered)} functions in {len(files)} modules", end="; ")
    print(f"generated of them {len(generated)} in {len({*generated})}")


def main() -> None:
    """Print the counts of the checkout that is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("checkout", nargs="?", type=Path, default=ROOT)
    parser.add_argument("--code", type=int, default=1001, help="of the request whose places are counted")
    arguments = parser.parse_args()
    root = arguments.checkout.resolve()
    project = tomllib.loads((root / "pyproject.toml").read_text())
    rooms = tuple(project["tool"]["hatch"]["build"]["dev-mode-dirs"])
    print_rooms(root, rooms)
    print_circles(root, rooms)
    print_places(root, rooms, arguments.code)
    print_way("from socket to answer", root, WAY)
    with tempfile.NamedTemporaryFile(prefix="replispec-way-", suffix=".pcap") as capture:
        capture.write(captured_1001())
        capture.flush()
        print_way("from packet to finding", root, WAY_OF_FINDING, capture.name)


if __name__ == "__main__":
    main()
