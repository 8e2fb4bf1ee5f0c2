"""The folder of one running target: its configuration, data and logs, and what was started there.

target.json    what runs here: kind, ports, processes with their start, so that a later command finds them
conf/ data/ home/ log/ tmp/
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path

from targets.lib.errors import TargetError
from targets.lib.processes import Process

STATE_FILE = "target.json"
PARTS = ("conf", "data", "home", "log", "tmp")


@dataclass(slots=True)
class State:
    """What a later command must know. `subject` names the process that `crash` kills."""

    implementation: str
    release: str
    kind: str
    subject: str
    ports: dict[str, int] = field(default_factory=dict)
    processes: list[Process] = field(default_factory=list)

    def living(self, name: str) -> Process | None:
        """The process with this name, if it runs."""
        return next((each for each in self.processes if each.name == name and each.alive), None)


class Folder:
    """Reads and writes the folder. Every change of the state is on disk before anything follows from it."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()

    def part(self, name: str) -> Path:
        """One of PARTS, made when it is missing."""
        place = self.path / name
        place.mkdir(parents=True, exist_ok=True)
        return place

    def load(self) -> State | None:
        """The state, or None when no target was ever started here. Raises TargetError when unreadable."""
        try:
            fields = json.loads((self.path / STATE_FILE).read_text())
            fields["processes"] = [Process(**each) for each in fields["processes"]]
            return State(**fields)
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError, OSError) as error:
            raise TargetError(f"{self.path / STATE_FILE} cannot be read: {error}") from error

    def save(self, state: State) -> None:
        """Replace the state file in one step."""
        self.path.mkdir(parents=True, exist_ok=True)
        written = self.path / f"{STATE_FILE}.new"
        written.write_text(json.dumps(asdict(state), indent=1) + "\n")
        os.replace(written, self.path / STATE_FILE)

    def wipe(self) -> None:
        """Remove data, configuration and logs; the state stays."""
        for name in PARTS:
            shutil.rmtree(self.path / name, ignore_errors=True)

    def last_words(self, name: str) -> str:
        """The last line that a process printed, for an error message; empty when it said nothing."""
        try:
            lines = (self.part("log") / f"{name}.out").read_text(errors="replace").split("\n")
        except FileNotFoundError:
            return ""
        return next((line.strip() for line in reversed(lines) if line.strip()), "")
