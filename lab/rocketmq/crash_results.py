"""What came of the rows of crash tables: lines of a file, written as each row ends, so that a run that was
cut off goes on and several share the work; and the table of all."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.rocketmq.crash_rows import Moment, Row

Key = tuple[str, str, str, str]
"""A move, a step of it, who dies there, and when; all as people read them."""
COUNTS = ("sent", "failed", "undecided", "read")


def key_of(move: str, row: Row) -> Key:
    """What a row is called in the file."""
    who = row.who.value if row.also is None else f"{row.who.value}, {row.also.value}"
    return move, str(row.step), who, row.moment.value


class Results:
    """The file and what it says. `is_resumed`: what it said before counts."""

    def __init__(self, path: Path, *, is_resumed: bool) -> None:
        self.path = path
        self._came: dict[Key, Sequence[str] | None] = {}
        self._seconds: Counter[str] = Counter()
        self._clients: dict[str, Counter[str]] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        if is_resumed:
            self.load()
        else:
            path.unlink(missing_ok=True)

    def load(self) -> None:
        """Read all of the file; a line that was cut off with its run says nothing."""
        self._came.clear()
        self._seconds.clear()
        self._clients.clear()
        for line in self.path.read_bytes().splitlines() if self.path.exists() else ():
            try:
                said = json.loads(line)
            except ValueError:
                continue
            self._take(said)

    def _take(self, said: Mapping[str, Any]) -> None:
        for each in said.get("expected", ()):
            key = _key(each)
            self._came.setdefault(key, None)
        if "row" in said:
            key = _key(said["row"])
            self._came[key] = said["wrong"]
            self._seconds[key[0]] += said["seconds"]
        elif "clients" in said:
            self._clients.setdefault(said["move"], Counter()).update(said["clients"])

    def _say(self, **said: object) -> None:
        # One write for each: lines of processes that share the file do not mix.
        with self.path.open("ab", buffering=0) as file:
            file.write(json.dumps(said).encode() + b"\n")
        self._take(said)

    def expect(self, move: str, rows: Sequence[Row]) -> None:
        """These are to be played."""
        self._say(expected=[key_of(move, each) for each in rows])

    def is_right(self, move: str, row: Row) -> bool:
        """Whether it was played, and nothing was wrong."""
        return self._came.get(key_of(move, row)) == []

    def add(self, move: str, row: Row, wrong: Sequence[str], seconds: float = 0.0) -> None:
        """It was played, and this was wrong."""
        self._say(row=key_of(move, row), wrong=list(wrong), seconds=round(seconds, 1))
        played = [each for key, each in self._came.items() if key[0] == move]
        number = sum(each is not None for each in played)
        print(f"{move} {number}/{len(played)} {row}: {'; '.join(wrong) or 'right'}", flush=True)

    def add_clients(
        self, move: str, rows: Sequence[Row], told: Mapping[str, int], wrong: Sequence[str]
    ) -> None:
        """What clients saw while these rows were played; if it was wrong, each of them may be to blame."""
        self._say(move=move, clients=dict(told))
        for row in rows if wrong else ():
            self.add(move, row, [f"clients of this and {len(rows) - 1} other rows: {'; '.join(wrong)}"])

    @property
    def are_right(self) -> bool:
        """Whether all were played, and were right."""
        return bool(self._came) and all(each == [] for each in self._came.values())

    def lines(self, moves: Sequence[str]) -> Iterator[str]:
        """A table for each move, with a row for each step and who dies, and a column for each moment; then
        what all came to."""
        for move in moves:
            own = {key[1:]: each for key, each in self._came.items() if key[0] == move}
            if own:
                yield from _table(move, own)
        yield from ("", f"| move | rows | right | wrong | not played | seconds | {' | '.join(COUNTS)} |")
        yield f"|{' --- |' * (6 + len(COUNTS))}"
        for move in moves:
            came = [each for key, each in self._came.items() if key[0] == move]
            right, open_ = came.count([]), came.count(None)
            clients = self._clients.get(move, Counter())
            numbers = len(came), right, len(came) - right - open_, open_, round(self._seconds[move])
            told = [*numbers, *(clients[each] for each in COUNTS)]
            yield f"| {move} | {' | '.join(f'{each:,}' for each in told)} |"


def _key(said: Sequence[str]) -> Key:
    move, step, who, moment = said
    return move, step, who, moment


def _table(move: str, came: Mapping[tuple[str, str, str], Sequence[str] | None]) -> Iterator[str]:
    moments = [each.value for each in Moment]
    yield from (
        "",
        f"{move}:",
        "",
        f"| step | who dies | {' | '.join(moments)} |",
        "| --- | --- | --- | --- | --- |",
    )
    for step, who in dict.fromkeys((step, who) for step, who, _ in came):
        cells = (came.get((step, who, each)) for each in moments)
        told = ["not played" if each is None else "wrong" if each else "right" for each in cells]
        yield f"| {step} | {who} | {' | '.join(told)} |"
