"""One target while it is started: its folder, its state, and the processes that join it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template

from targets.lib.errors import TargetError
from targets.lib.folder import Folder, State
from targets.lib.ports import free_ports
from targets.lib.processes import spawn, terminate

LIB = Path(__file__).parent
# What a user has set for another RocketMQ must not reach these.
FOREIGN_VARIABLES = ("NAMESRV_ADDR", "ROCKETMQ_HOME", "ROCKETMQ_SERIALIZE_TYPE")


@dataclass(slots=True)
class Running:
    """The folder and the state of one target; both change together."""

    folder: Folder
    state: State

    def take_ports(self, **offsets: int) -> None:
        """Choose free ports at these distances from each other, unless a former start did."""
        missing = {name: offset for name, offset in offsets.items() if name not in self.state.ports}
        if missing:
            self.state.ports |= zip(missing, free_ports(list(missing.values())), strict=True)
            self.folder.save(self.state)

    def fill(self, template: str) -> Path:
        """Write one of the configurations beside this file with this target's ports and folders."""
        values = {name: str(port) for name, port in self.state.ports.items()}
        text = Template((LIB / template).read_text()).substitute(values, data=self.folder.part("data"))
        written = self.folder.part("conf") / template
        written.write_text(text)
        return written

    def copy(self, name: str) -> None:
        """Lay one of the configurations beside this file into the target's as it is."""
        shutil.copyfile(LIB / name, self.folder.part("conf") / name)

    def launch(self, name: str, command: Sequence[str]) -> None:
        """Start a process, and write down that it was started, before anything else happens."""
        environment = {key: value for key, value in os.environ.items() if key not in FOREIGN_VARIABLES}
        environment["HOME"] = str(self.folder.part("home"))
        environment["TMPDIR"] = str(self.folder.part("tmp"))
        log = self.folder.part("log") / f"{name}.out"
        process = spawn(name, command, log=log, environment=environment)
        self.state.processes = [each for each in self.state.processes if each.name != name] + [process]
        self.folder.save(self.state)

    def end(self, name: str) -> None:
        """End one process in order."""
        terminate(each for each in self.state.processes if each.name == name)

    def check_alive(self, name: str) -> None:
        """Raises TargetError, with its last words, when the process has ended."""
        if self.state.living(name) is None:
            words = self.folder.last_words(name)
            raise TargetError(f"{name} ended at its start: {words or 'it said nothing'}")

    def pids(self) -> list[int]:
        """The pids of what runs, in the order of their start."""
        return [process.pid for process in self.state.processes if process.alive]
