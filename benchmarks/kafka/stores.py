"""Reads and writes of a store: one at a time, many deep, and many in one multi."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from typing import Final

from benchmarks.family import Bench, WrongResultError, in_a_folder
from benchmarks.kafka.fail_over import GENERATION, OURS, ZOOKEEPER
from benchmarks.kafka.sessions import DEEP, Asked, StoreSession
from benchmarks.kafka.stages import BenchStage, Spent
from replispec.runtime.zookeeper.client.client import create_of
from replispec.wire.zookeeper.codes import ErrorCode, OpCode
from replispec.wire.zookeeper.constants import ANY_VERSION
from replispec.wire.zookeeper.operations import (
    GetDataRequest,
    MultiOperation,
    MultiRequest,
    SetDataRequest,
)

NODES: Final = 2_000
OF_A_MULTI: Final = 500
DATA: Final = bytes(100)
RATES: Final = (
    "creates, deep",
    "reads, one at a time",
    "reads, deep",
    "writes, one at a time",
    "writes, deep",
)
IN_MULTIS: Final = "writes, in multis of 500"
FIGURES: Final = {
    **{f"store: {each}": ("/s", True) for each in (*RATES, IN_MULTIS)},
    "store: CPU of all": ("s", False),
    "store: memory": ("MB", False),
}


def measure(bench: Bench, seconds: float, rounds: int) -> None:
    """Both in turns, each figure for so many seconds. Raises WrongResultError."""
    for _ in range(rounds):
        for store in (OURS, ZOOKEEPER):
            with in_a_folder("store") as cluster:
                measure_one(bench, BenchStage(cluster, GENERATION, "store"), store, seconds)


def measure_one(bench: Bench, stage: BenchStage, store: str, seconds: float) -> None:
    """All figures of a store. Raises WrongResultError."""
    stage.start_store(ours=store == OURS)
    before = Spent.of(stage, "store")
    with closing(StoreSession(stage.port("store"))) as session:
        for what, rate in _rates(session, seconds):
            bench.note(f"store: {what}", store, rate)
    after = Spent.of(stage, "store")
    bench.note("store: CPU of all", store, after.cpu_s - before.cpu_s)
    bench.note("store: memory", store, after.peak_mb)


def _rates(session: StoreSession, seconds: float) -> Sequence[tuple[str, float]]:
    session.make("/bench")
    paths = [f"/bench/{number}" for number in range(NODES)]
    made = [(int(OpCode.CREATE), create_of(each, DATA).encode()) for each in paths]
    reads = [(int(OpCode.GET_DATA), GetDataRequest(each, False).encode()) for each in paths]
    sets = [SetDataRequest(each, DATA, ANY_VERSION) for each in paths]
    writes = [(int(OpCode.SET_DATA), each.encode()) for each in sets]
    multis = [
        (
            int(OpCode.MULTI),
            MultiRequest([MultiOperation(OpCode.SET_DATA, set_data=each) for each in part]).encode(),
        )
        for part in (sets[at : at + OF_A_MULTI] for at in range(0, NODES, OF_A_MULTI))
    ]
    began_s = time.perf_counter()
    _ask(session, made, DEEP)
    created = NODES / (time.perf_counter() - began_s)
    asked = partial(_rate, seconds)
    return (
        (RATES[0], created),
        (RATES[1], asked(partial(_ask, session, reads[:100], 1))),
        (RATES[2], asked(partial(_ask, session, reads, DEEP))),
        (RATES[3], asked(partial(_ask, session, writes[:100], 1))),
        (RATES[4], asked(partial(_ask, session, writes, DEEP))),
        (IN_MULTIS, asked(partial(_ask, session, multis, len(multis))) * OF_A_MULTI),
    )


def _ask(session: StoreSession, asked: Sequence[Asked], deep: int) -> int:
    """How many were asked. Raises WrongResultError."""
    failed = {each.error for each in session.ask_all(asked, deep)} - {ErrorCode.OK}
    if failed:
        raise WrongResultError(f"the store answers {sorted(failed)}")
    return len(asked)


def _rate(seconds: float, work: Callable[[], int]) -> float:
    """How many a second."""
    done, began_s = 0, time.perf_counter()
    while (spent_s := time.perf_counter() - began_s) < seconds or not done:
        done += work()
    return done / spent_s if spent_s else 0.0
