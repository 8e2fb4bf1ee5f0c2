"""One simulated pair of brokers of which a member ends and is damaged before it starts again, from one seed.

    python -m tests.sim.damage SEED [SEED ...]

prints what was done, what was refused, and what was wrong. Damage is one of: nothing but the crash, a byte
that turned anywhere in any file, a file that is short, empty or gone, a run of zeros. What must be true
afterwards names no bug: every message that was acknowledged is read at its place, or the damaged member says
what it refuses and what to do, which is then done; and the members' logs are the same.

With `unnoted` the other one is master by then, the note of what was on the disk is gone, and a byte of the
log has turned: half of the bytes of a record have no checksum, and nothing but the master's log tells.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from replispec.runtime.sim import Disk, Rng
from replispec.runtime.world import Level
from replispec.wire.rocketmq.constants import FLUSHED_FILE, IDENTITY_FILE
from replispec.wire.rocketmq.options import ComparisonOptions
from replispec.wire.rocketmq.store import LogRecord
from tests.broker.simulated_set import OK, BrokerSet

FILE_BYTES: Final = 4_096
QUEUES: Final = 3
PROPERTIES: Final = (
    "",
    "KEYS\x01k\x02",
    "KEYS\x01k",
    "KEYS\x01k\x02TAGS\x01t\x00",
    "\x00",
    "a\x01\x00\x02",
    "a\x01b\x02\x00\x00",
    "ä\x01ü\x02",
)
"""What producers say beside a body; Java's ends each pair, others may say anything."""
QUIET_MS: Final = 3_000
"""As long as nothing was sent, all that a member has is noted to be on its disk."""
ADVICE: Final = "aside"
"""What a refusal of a damaged store names, so that whoever reads it knows what to do."""
NOT_COUNTED: Final = "not counted: the log is not the master's"
"""How the line begins of a member whose log differs from its master's; it is repaired then."""
PATIENCE_MS: Final = 120_000
STEADY_MS: Final = 8_000
"""A set of two that holds for so long will not be made smaller for what happened before."""
TRIES: Final = 40


@dataclass
class Result:
    """What came of a seed. `wrong` is empty when every promise was kept; `refused`: what did not start."""

    seed: int
    done: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    acknowledged: int = 0

    def __str__(self) -> str:
        """A paragraph for people."""
        lines = [f"seed {self.seed}: {self.acknowledged} acknowledged; {'; '.join(self.done)}"]
        lines += [f"  refused: {each}" for each in self.refused]
        return "\n".join([*lines, *(f"  WRONG: {each}" for each in self.wrong)])


class Damaged:
    """A pair of brokers, what it acknowledged, and what is done to it."""

    def __init__(
        self, seed: int, *, only_flips: bool = False, unnoted: bool = False, compares: bool = True
    ) -> None:
        self.result = Result(seed)
        self._rng = Rng(seed)
        self._only_flips = only_flips or unnoted
        self._unnoted = unnoted
        self._set = BrokerSet(seed)
        self._whole_ms = 0
        self._is_odd = self._rng.happens(300)
        self._acknowledged: dict[tuple[int, int], bytes] = {}
        self._addresses = self._set.pair(
            mapped_file_size_commit_log=FILE_BYTES,
            comparison=ComparisonOptions(compare_log_with_master=compares),
        )

    def run(self) -> Result:
        """Send, damage, start again, change roles, and judge after each."""
        rng, world = self._rng, self._set.world
        self._send(rng.between(8, 40))
        victim, is_whole = rng.between(1, 2), self._only_flips or rng.happens(700)
        world.run_for(QUIET_MS if is_whole else rng.between(0, 20))
        is_away = not self._unnoted and rng.happens(400)
        if is_away:
            world.kill("controller")
        self._end(victim, stops=self._only_flips)
        if self._unnoted:
            self._until(lambda: self._serves(3 - victim))
            self._forget_note(world.processes[f"broker{victim}"].disk)
        elif is_whole:
            self._damage(world.processes[f"broker{victim}"].disk)
        self._set.notes.clear()
        world.start(f"broker{victim}")
        world.run_for(200)
        if is_away:
            world.start("controller")
        self._settle(victim)
        self._judge("after the start")
        self._send(3)
        self._turn()
        self._judge("after a change of roles")
        self.result.acknowledged = len(self._acknowledged)
        return self.result

    # What is done

    def _send(self, count: int) -> None:
        for number in range(count):
            queue = self._rng.below(QUEUES)
            body = f"message {len(self._acknowledged)} {number}".encode() + bytes(self._rng.below(90))
            said = self._rng.one_of(PROPERTIES if self._is_odd else PROPERTIES[:3])
            master = self._master()
            if master is None:
                self.result.wrong.append("no master takes messages")
                return
            code, told = self._set.send(master, body, queue=queue, properties=said)
            if code == OK:
                self._acknowledged[told.queue_id or 0, told.queue_offset or 0] = body

    def _end(self, number: int, *, stops: bool = False) -> None:
        name = f"broker{number}"
        how = 0 if stops else self._rng.below(3)
        self.result.done.append(f"{name} {('stopped', 'killed', 'lost its power')[how]}")
        if how == 0:
            self._set.world.stop(name)
        else:
            self._set.world.kill(name, power=how == 2)

    def _damage(self, disk: Disk) -> None:
        name = self._rng.one_of(sorted(disk.contents))
        data = disk.contents[name].data
        kinds: tuple[tuple[int, Callable[[str, bytearray], str]], ...] = (
            (10, self._turn_byte),
            (0 if self._only_flips else 2, self._shorten),
            (0 if self._only_flips else 1, self._empty),
            (0 if self._only_flips else 2, self._blank),
        )
        drawn = self._rng.below(sum(weight for weight, _ in kinds))
        for weight, kind in kinds:
            if drawn < weight:
                self.result.done.append(f"{name}: {kind(name, data)}")
                return
            drawn -= weight

    def _forget_note(self, disk: Disk) -> None:
        """A byte of the log turns, and what was on the disk is not noted any more."""
        del disk.contents[f"store/{FLUSHED_FILE}"]
        name = self._rng.one_of(sorted(name for name in disk.contents if "/commitlog/" in name))
        self.result.done.append(f"no note; {name}: {self._turn_byte(name, disk.contents[name].data)}")

    def _place(self, data: bytearray) -> int:
        """Somewhere in a file; mostly where there is something."""
        used = len(data.rstrip(b"\0")) if self._rng.happens(900) else len(data)
        return self._rng.below(max(used, 1))

    def _turn_byte(self, _name: str, data: bytearray) -> str:
        if not data:
            return "nothing to turn"
        at, other = self._place(data), self._rng.between(1, 255)
        data[at] ^= other
        return f"byte {at} turned from {data[at] ^ other:#x} to {data[at]:#x}"

    def _shorten(self, _name: str, data: bytearray) -> str:
        at = self._place(data)
        del data[at:]
        return f"cut to {at} bytes"

    def _empty(self, _name: str, data: bytearray) -> str:
        data.clear()
        return "cut to nothing"

    def _blank(self, _name: str, data: bytearray) -> str:
        at = self._place(data)
        end = min(len(data), at + 1 + self._rng.below(600))
        data[at:end] = bytes(end - at)
        return f"zeros from {at} to {end}"

    def _turn(self) -> None:
        """The master ends, the other one serves, and the first one comes back."""
        master = self._master()
        if master is None:
            return
        number = self._addresses.index(master) + 1
        self._end(number)
        other = 3 - number
        if not self._until(lambda: self._serves(other)):
            self.result.wrong.append(f"broker{other} does not serve without broker{number}")
        self._send(2)
        self._set.world.start(f"broker{number}")
        self._settle(number)

    # What is seen

    def _serves(self, number: int) -> bool:
        return bool(self._set.world.processes[f"broker{number}"].lives) and self._set.broker(number).serves

    def _master(self) -> str | None:
        """Where messages are taken now."""
        if not self._until(lambda: self._serves(1) or self._serves(2)):
            return None
        return self._addresses[0 if self._serves(1) else 1]

    def _until(self, is_so: Callable[[], bool]) -> bool:
        return self._set.world.run_until(is_so, at_most_ms=PATIENCE_MS)

    def _is_whole(self) -> bool:
        ids = {self._id(1), self._id(2)}
        return any(self._serves(each) and self._set.members(each) == ids for each in (1, 2))

    def _id(self, number: int) -> int:
        content = self._set.world.processes[f"broker{number}"].disk.contents.get("store/brokerIdentity")
        parts = bytes(content.data).split(b"#") if content is not None else []
        return int(parts[2]) if len(parts) > 2 and parts[2].isdigit() else 0

    def _is_steady(self) -> bool:
        now_ms = self._set.world.now_us // 1_000
        if not self._is_whole():
            self._whole_ms = now_ms + 1
        return now_ms >= self._whole_ms + STEADY_MS

    def _settle(self, victim: int) -> None:
        """Until both are in the set; a member that refuses to go on is emptied, as its refusal says."""
        world, process = self._set.world, self._set.world.processes[f"broker{victim}"]
        refusals = 0
        self._whole_ms = world.now_us // 1_000
        while not self._until(lambda: self._is_steady() or self._is_out(victim)) or self._is_out(victim):
            if process.is_alive and self._is_out(victim):
                self._repair(victim)
                continue
            refusals += 1
            if process.failure is None or refusals > 1:
                self.result.wrong.append(f"never whole again: {self._said()}")
                return
            self.result.refused.append(process.failure)
            if not any(ADVICE in each for each in (process.failure, *self._said())):
                self.result.wrong.append("the refusal does not say what to do")
            process.disk.contents.clear()
            world.start(f"broker{victim}")

    def _is_out(self, victim: int) -> bool:
        """Whether a member needs its operator."""
        name = f"broker{victim}"
        differs = any(who == name and note.what.startswith(NOT_COUNTED) for who, note in self._set.notes)
        return differs or not self._set.world.processes[name].is_alive

    def _repair(self, victim: int) -> None:
        """What `replispec admin repair` does: out of the set, a member leaves all that it had but its id."""
        name, world = f"broker{victim}", self._set.world
        self.result.refused.append(f"{name} differs from its master")
        world.kill(name)
        self._until(lambda: self._id(victim) not in self._set.members(3 - victim))
        contents = world.processes[name].disk.contents
        for each in [each for each in contents if each != f"store/{IDENTITY_FILE}"]:
            del contents[each]
        self._set.notes.clear()
        world.start(name)

    def _said(self) -> list[str]:
        return [
            f"{who}: {note.what} {note.values}" for who, note in self._set.notes if note.level > Level.INFO
        ]

    # What must be true

    def _judge(self, when: str) -> None:
        master = self._master()
        if master is None:
            self.result.wrong.append(f"no master {when}")
            return
        lost = self._missing(master)
        for _ in range(TRIES):
            if not lost:
                break
            self._set.world.run_for(500)
            lost = self._missing(self._master() or master)
        if lost:
            self.result.wrong.append(f"{when}: {len(lost)} of {len(self._acknowledged)} lost, {lost[0]}")
        if self._until(lambda: self._is_whole() and self._log(1) == self._log(2)):
            return
        if self._is_whole():
            self.result.wrong.append(
                f"{when}: logs of {len(self._log(1))} and {len(self._log(2))} bytes differ"
            )

    def _missing(self, master: str) -> list[tuple[tuple[int, int], str]]:
        """What was acknowledged and cannot be read, each with why."""
        return [(place, found) for place in self._acknowledged if (found := self._lost(master, place))]

    def _lost(self, master: str, place: tuple[int, int]) -> str:
        """Why an acknowledged message cannot be read at its place; empty when it can."""
        queue, position = place
        code, _, data = self._set.pull(master, position, queue=queue)
        if code != OK:
            return f"answered {code}"
        body = LogRecord.decode_at(data, 0, len(data))[0].body
        return "" if body == self._acknowledged[place] else f"{body[:20]!r} is there"

    def _log(self, number: int) -> bytes:
        contents = self._set.world.processes[f"broker{number}"].disk.contents
        names = sorted(name for name in contents if "/commitlog/" in name)
        return b"".join(bytes(contents[name].data) for name in names).rstrip(b"\0")


def run(seed: int, *, only_flips: bool = False, unnoted: bool = False, compares: bool = True) -> Result:
    """One pair of brokers from one seed; `only_flips`: a member that was stopped has one turned byte.
    `unnoted`: one of its log, and no note. `compares`: replicas compare their logs with their master's."""
    return Damaged(seed, only_flips=only_flips, unnoted=unnoted, compares=compares).run()


def main() -> None:
    """The command line."""
    results = [run(int(argument)) for argument in sys.argv[1:]]
    sys.stdout.writelines(f"{result}\n" for result in results)
    sys.exit(1 if any(result.wrong for result in results) else 0)


if __name__ == "__main__":
    main()
