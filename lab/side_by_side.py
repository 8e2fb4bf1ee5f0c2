"""Tasks side by side, each in a process of its own, which ends what it started when it is interrupted."""

from __future__ import annotations

import multiprocessing
import os
import resource
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Generic, TypeVar

from lab.cluster import end_in_order

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Task(Generic[Found]):
    """What is to be done, and the file that holds what it prints. What it gives is pickled."""

    do: Callable[[], Found]
    printed: Path


@dataclass(frozen=True, slots=True)
class Done(Generic[Found]):
    """What a task gave, None when its process died of something; seconds by the clock and of CPU, with those
    of all processes that it waited for."""

    task: Task[Found]
    found: Found | None
    took_s: float
    cpu_s: float


def side_by_side(tasks: Sequence[Task[Found]], at_once: int) -> Generator[Done[Found]]:
    """Do so many tasks at a time, the first ones first, and give each when it is done.

    Whoever stops listening, or is interrupted, leaves no task behind: each is interrupted and waited for.
    """
    waiting = list(reversed(tasks))
    running: dict[Connection, tuple[Task[Found], BaseProcess, float]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                task = waiting.pop()
                heard, process = _begin(task)
                running[heard] = (task, process, time.monotonic())
            for each in wait(list(running)):
                assert isinstance(each, Connection)
                task, process, began_s = running.pop(each)
                found, cpu_s = _told(each)
                process.join()
                yield Done(task, found, time.monotonic() - began_s, cpu_s)
    finally:
        for _, process, _ in running.values():
            process.terminate()
        for _, process, _ in running.values():
            process.join()


def _begin(task: Task[Found]) -> tuple[Connection, BaseProcess]:
    forked = multiprocessing.get_context("fork")
    heard, said = forked.Pipe(duplex=False)
    process = forked.Process(target=_do, args=(task, said))
    process.start()
    said.close()
    return heard, process


def _told(heard: Connection) -> tuple[Found | None, float]:
    with heard:
        try:
            found, cpu_s = heard.recv()
        except EOFError:
            return None, 0.0
    return found, cpu_s


def _do(task: Task[Found], said: Connection) -> None:
    """In the process of a task."""
    end_in_order()
    with task.printed.open("wb") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    with suppress(KeyboardInterrupt):
        found = task.do()
        said.send((found, _cpu_s()))


def _cpu_s() -> float:
    every = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in every)
