"""Where Spark runs: what is told of a cluster, and in plain words what may go wrong there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

# What is in a store that Hadoop reads: s3a://bucket/folder/*.pcap.
_URL = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*://")
# The host of "spark://host:port".
_HOST = re.compile(r"^\w+://\[?([^/,]*?)\]?(:\d+)?(/|,|$)")
OTHER_WORKER = "a worker has another replispec than this one"
LATE = "Python worker failed to connect back"
# What Spark and Python say on a worker, and what that means for whoever started the replay; {0}, {1} are what
# the pattern found. The first that fits is told.
_MEANINGS = (
    (r"in worker has different version: (.+?) than that in driver: (.+?), PySpark",
     "a worker runs another Python than this one ({0}, {1}): set PYSPARK_PYTHON to one of the same version"),
    (rf"({OTHER_WORKER} \([^)]*\))", "{0}: give --packed FILE (replispec pack)"),
    (r"bigger than spark\.driver\.maxResultSize \(([^)]+)\)",
     "what workers tell is more than spark.driver.maxResultSize ({0}): set it by --spark-setting"),
    (r"OutOfMemoryError",
     "Spark's Java process is out of memory: give --spark-setting spark.driver.memory=4g or more"),
    (r"ExecutorLostFailure|Python worker exited unexpectedly",
     "workers ended at one task as often as Spark tries it, out of memory perhaps; see spark.log in --out"),
    (LATE, "a Python worker of Spark did not start within 10 s: this machine does too much else"),
    # What Py4J says of a call whose Java process ended; of one that failed there it has more to say.
    ((r"\AAn error occurred while calling \S+\Z|Answer from Java side is empty|"
     r"Error while sending or receiving|Py4JNetworkError|Connection refused"),
     "Spark's Java process ended, as one that is out of memory is ended; spark.log in --out says more"),
    (r"\[Errno \d+\] (No space left on device|Disk quota exceeded)",
     "what a worker was to write does not fit: {0}"),
    (r"No module named '?([\w.]+)",
     "a worker has no Python package {0}: give --packed FILE (replispec pack)"),
    (r'Cannot run program "([^"]+)"', "a worker cannot start {0}: set PYSPARK_PYTHON to a Python it has"),
    (r"Could not parse Master URL: '([^']*)'", "{0!r} names no master of Spark"),
    (r"All masters are unresponsive", "no master answers"),
    (r"Cannot call methods on a stopped SparkContext",
     "no master answers, or it ended the application; spark.log in --out says more"),
    (r"JAVA_GATEWAY_EXITED", "Spark did not start; spark.log in --out says why"),
    (r"cancelled part of cancelled job group|cancelled job group",
     "no worker took a task: the cluster has none that is free and large enough"),
)  # fmt: skip
# What Java's exceptions say of themselves, where nothing that runs in Python failed.
_JAVA = re.compile(r"^(?:Caused by|): ?(?:[\w$]+\.)+([\w$]+): (.+)$", re.MULTILINE)
_PYTHON = "Traceback (most recent call last)"
_SHOWN_CHARACTERS = 200


class ClusterError(Exception):
    """The cluster cannot replay; one line says why, and what to do."""


class StoreError(Exception):
    """A store gives no captures; one line says which, and why."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where Spark runs.

    `master`: its URL as Spark takes it; `packed`: what `packing.pack` wrote, for workers without replispec;
    `settings`: more of Spark's own settings.
    """

    master: str = "local[*]"
    packed: Path | None = None
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_here(self) -> bool:
        """Whether this process and its children do the work."""
        return re.fullmatch(r"local(\[[^\]]*\])?", self.master) is not None

    @property
    def on_this_machine(self) -> bool:
        """Whether all traffic of Spark stays on the loopback interface."""
        if self.master.startswith("local"):
            return True
        host = _HOST.match(self.master)
        return host is not None and (host[1] in ("localhost", "::1") or host[1].startswith("127."))


def is_url(text: str) -> bool:
    """Whether a text is the address of something in a store, and no local path."""
    return _URL.match(text) is not None


def meaning(said: str) -> str | None:
    """One line for what Spark said of a failure; None where code of ours failed, or nothing of Spark's."""
    for pattern, words in _MEANINGS:
        found = re.search(pattern, said)
        if found is not None:
            return words.format(*found.groups())
    causes = _JAVA.findall(said)
    if not causes or _PYTHON in said:
        return None
    name, message = causes[-1]
    return f"Spark says {name}: {message[:_SHOWN_CHARACTERS]}; spark.log in --out says more"
