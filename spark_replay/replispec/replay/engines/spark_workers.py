"""What the workers of a cluster have to have, asked of them before any work is given to them.

A worker without replispec could not even read a function of ours. So this module is sent to it whole: what it
runs there imports nothing of replispec but where it says so.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Any

from pyspark import SparkContext, cloudpickle

from replispec.replay.engines.cluster import OTHER_WORKER, ClusterError, meaning

# A cluster that gives no task within this time will not give one soon.
ANSWER_S_MAXIMUM = 120.0
_ASKING = "replispec asks its workers"


@contextmanager
def plain_failures() -> Iterator[None]:
    """Let a failure of the cluster that is known end in one line: raises ClusterError for it.

    What Spark says of jobs that end because somebody interrupts is an interrupt.
    """
    try:
        yield
    except Exception as error:
        if _is_interrupted(error):
            raise KeyboardInterrupt from None
        words = meaning(str(error))
        if words is None or isinstance(error, ClusterError):
            raise
        raise ClusterError(words) from error


def _is_interrupted(error: BaseException) -> bool:
    """Whether it came up while an interrupt was handled."""
    seen: set[int] = set()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        if isinstance(each, KeyboardInterrupt):
            return True
        seen.add(id(each))
        each = each.__context__
    return False


def check_workers(context: SparkContext, identity: str, out: Path) -> None:
    """Refuse workers that would judge otherwise than this process, or see other files. Raises ClusterError.

    `identity`: what `packing.identity` says here; `out`: where the replay is written.
    """
    with _seen_by_all(out) as marks:
        for has, missing in _answers(context, marks):
            if has != identity:
                raise ClusterError(f"{OTHER_WORKER} ({has}, {identity}): give --packed FILE (replispec pack)")
            if missing:
                raise ClusterError(
                    f"a worker does not see {os.path.dirname(missing)}: captures, --out and TMPDIR "
                    "have to lie on storage that all workers share"
                )


def _answers(context: SparkContext, marks: list[str]) -> list[tuple[str, str]]:
    """What each of the workers says: its replispec, and which of the files it does not see."""
    tasks = max(2, context.defaultParallelism)
    own = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(own)  # type: ignore[no-untyped-call]
    context.setJobGroup(_ASKING, _ASKING)
    patience = Timer(ANSWER_S_MAXIMUM, context.cancelJobGroup, [_ASKING])
    patience.daemon = True
    patience.start()
    try:
        with plain_failures():
            found: list[tuple[str, str]] = (
                context.parallelize(range(tasks), tasks).mapPartitions(_look(marks)).collect()
            )
    finally:
        patience.cancel()
        context.setJobGroup("", "")
        cloudpickle.unregister_pickle_by_value(own)  # type: ignore[no-untyped-call]
    return found


def _look(marks: list[str]) -> Callable[[Any], Iterator[tuple[str, str]]]:
    def look(_: Any) -> Iterator[tuple[str, str]]:
        from replispec.replay.engines.packing import identity

        yield identity(), next((mark for mark in marks if not os.path.exists(mark)), "")

    return look


@contextmanager
def _seen_by_all(out: Path) -> Iterator[list[str]]:
    """Files where workers have to see what this process writes."""
    with (
        tempfile.NamedTemporaryFile(prefix=".replispec-seen-", dir=out.absolute()) as written,
        tempfile.NamedTemporaryFile(prefix="replispec-seen-") as passing,
    ):
        yield [written.name, passing.name]
