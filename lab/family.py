"""What the lab asks of a family of protocols: one object, `FAMILY` in `lab.<family>.family`.

The lab starts, kills and records processes, tells what happens, and has the traffic judged. What is said to
the processes, and what must be true of them, is the family's.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from lab.cluster import Cluster
from lab.interop.measured import Measured
from lab.subjects.subject import Subject
from replispec.runtime.adapting.adapter_shell import Programs
from replispec.runtime.primitives.errors import RemoteProtocolError

BETWEEN_MESSAGES_S = 0.02
# Of a scenario that strikes at random: about ten minutes; with this seed each kind of strike is among them.
ROUNDS, SEED = 6, 4


@dataclass(slots=True)
class Story:
    """What happens, as it is told: one line each, with the seconds since the start."""

    began_s: float = field(default_factory=time.monotonic)

    def tell(self, line: str) -> None:
        """Print a line."""
        print(f"{time.monotonic() - self.began_s:6.1f} s  {line}", flush=True)


@dataclass(frozen=True, slots=True)
class Demo:
    """A cluster that loses its master: what is played on it, and how the replay is told to judge, if it is.

    The processes record their traffic below `tap/` of the cluster's folder.
    """

    play: Callable[[Cluster, Story], None]
    replay_options: tuple[str, ...] = ()
    is_replayed: bool = True


class LoadSender(threading.Thread, ABC):
    """Sends one message after the other to whoever takes them, and keeps what was acknowledged."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.acknowledged: list[bytes] = []
        self.sent = 0
        self._stopping = threading.Event()

    def wait_stopped(self) -> bool:
        """Wait as long as between two messages; whether no further one is wanted."""
        return self._stopping.wait(BETWEEN_MESSAGES_S)

    @property
    def is_stopping(self) -> bool:
        """Whether no further message is wanted."""
        return self._stopping.is_set()

    def run(self) -> None:
        """Until stopped: a receiver that is gone is looked up again."""
        while not self.wait_stopped():
            try:
                self.send_until_refused()
            except (OSError, RemoteProtocolError):
                continue

    def stop(self) -> None:
        """End after the message under way."""
        self._stopping.set()
        self.join()

    @abstractmethod
    def send_until_refused(self) -> None:
        """Look up the receiver and send to it until it refuses, or nothing more is wanted."""


class KilledCluster(Protocol):
    """A cluster whose processes are killed and started again, under load.

    `is_certain` tells whether everything may lose its power at any time and nothing acknowledged is lost;
    else one machine at a time may, when all have what was acknowledged.
    """

    is_certain: bool

    @property
    def names(self) -> tuple[str, ...]:
        """The processes that are killed, in the order of their first start."""
        ...

    def start(self, name: str) -> None:
        """Start one of them, the first time or after a kill."""
        ...

    def wait_whole(self) -> None:
        """Wait until all of them work together."""
        ...

    def folder(self, name: str) -> Path:
        """Where all lies that one of them must find again when it starts, and nothing of another's."""
        ...

    def identities(self) -> Mapping[str, bytes]:
        """What says who each is that must stay who it is. Raises LabError."""
        ...

    def load(self) -> LoadSender:
        """A sender that is not started yet."""
        ...

    def judged(self, sender: LoadSender) -> str:
        """Demand that nothing acknowledged is lost; what to tell of it. Raises LabError."""
        ...


@dataclass(frozen=True, slots=True)
class Rounds:
    """How often a scenario strikes that does so at random, the seed of whom and how, and the release of the
    other people's programs that are struck: the one of all scenarios when it is empty."""

    count: int = ROUNDS
    seed: int = SEED
    release: str = ""


Scenario = Callable[[Cluster, Measured, Rounds], None]


@dataclass(frozen=True, slots=True)
class Interop:
    """Our roles among other people's programs: the scenarios by name, each with what it is about. Its traffic
    is recorded; what `is_replayed` is judged by the replay, too."""

    others: str
    fetch: Callable[[], object]
    scenarios: Mapping[str, tuple[Scenario, str]]
    replay_options: tuple[str, ...] = ()
    is_replayed: bool = True


@dataclass(frozen=True, slots=True)
class Edited:
    """Which sources of the specification are edited one place at a time, by name.

    `machines` for their edges, `bound` for what binds them to messages, `messages` for the options of their
    bytes. `other_releases` are ranges that hold none of the releases in which a refusal counts as success.
    """

    machines: tuple[str, ...]
    bound: tuple[str, ...]
    messages: tuple[str, ...]
    other_releases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LabFamily:
    """One family. `foreign_variables` are those of the environment that must not reach its processes;
    `smoke` starts one process of ours, waits until it answers, and says what was seen; `adapted` is how an
    adapter of a conformance suite starts a subject, with the words after its name; `killed` are clusters by
    what is set differently in them; `more_demos` are others to play, by name. What a family does not have
    is None, or empty."""

    subjects: Callable[[], Iterable[Subject]]
    smoke: Callable[[Cluster], str]
    demo: Demo | None = None
    killed: Mapping[str, Callable[[Cluster], KilledCluster]] = field(default_factory=dict)
    interop: Interop | None = None
    edited: Edited | None = None
    adapted: Callable[[Subject, Sequence[str]], Programs] | None = None
    foreign_variables: tuple[str, ...] = ()
    more_demos: Mapping[str, Demo] = field(default_factory=dict)
