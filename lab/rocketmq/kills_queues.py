"""`make kills-queues`: whoever dies at a step of a move of logical queues costs nothing, with real processes.

Three brokers, a name server and a controller; a producer sends all the while. A command moves a queue;
at one of its requests the administrator, the source, the target or the name server is killed with -9, or two
of them (--two-die). Servers are started again, and the same command is typed once more, which must finish the
move. A source that is lost (--move lost) is dead before the command, and comes back after it. Which rows
there are, and what must be true after each, is shared with simulated worlds (`crash_rows`).
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from lab.cluster import CLUSTER_NAME, Cluster, end_in_order
from lab.errors import LabError
from lab.ports import LOOPBACK
from lab.processes import environment
from lab.rocketmq import questions, settings
from lab.rocketmq.crash_gate import OUTSIDE, Gate
from lab.rocketmq.crash_judge import EXPIRED, Clients, faults_of_mapping, states
from lab.rocketmq.crash_rows import AGAIN, LOST, NEW, REMAPPED, UNKNOWN, Moment, Move, Party, Row, Step
from lab.rocketmq.peer import Peer
from lab.rocketmq.roles import OURS
from replispec.runtime.primitives.headers import Header
from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode

BROKERS: Final = ("broker1", "broker2", "broker3")
CONTROLLER, NAME_SERVER, PROBE = "controller", "nameserver", "ProbeTopic"
QUEUES: Final = 3
CLI: Final = (sys.executable, "-P", "-m", "replispec.cli")
COMMAND_S, AGREED_S, END_S = 180.0, 60.0, 120.0
TRIES_MAX: Final = 3
PAUSE_S, IDLE_S = 0.02, "4"
SOONER: Final = {
    "brokerHeartbeatInterval": 300,
    "controllerHeartBeatTimeoutMills": 2_000,
    "registerNameServerPeriod": 10_000,
    "officeSilencePeriod": 2_000,
    "alterationDoubtPeriod": 2_000,
    "mappedFileSizeCommitLog": 262_144,
    "flushDiskType": "SYNC_FLUSH",
}
MOVES: Final = {"new": NEW, "again": AGAIN, "lost": LOST, "static": REMAPPED}
AHEAD: Final = 1_000
"""So many offsets behind the last that a lost source is known to have given its queue goes on."""
# A file of the log goes as soon as it is full, and two of them are filled.
FILE_BYTES, FILLER_BYTES = 65_536, 8_000
YOUNG: Final = {
    "fileReservedTime": 0,
    "deleteWhen": ";".join(f"{hour:02}" for hour in range(24)),
    "cleanResourceInterval": 500,
    "mappedFileSizeCommitLog": FILE_BYTES,
}
Line = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Places:
    """Who is who in the next move; `words`: its command line."""

    words: Sequence[str]
    source: str
    target: str

    def name(self, who: Party) -> str:
        """The process of a server."""
        return {Party.SOURCE: self.source, Party.TARGET: self.target}.get(who, NAME_SERVER)


def _next(move: Move, number: int) -> Places:
    """Move number so-and-so: LQ round and round, ST there and back."""
    if move.is_contiguous:
        source, target = BROKERS[number % 3], BROKERS[(number + 1) % 3]
        return Places(move.words(target), source, target)
    source, target = BROKERS[1 + number % 2], BROKERS[2 - number % 2]
    return Places(move.words(BROKERS[0], target), source, target)


@dataclass(slots=True)
class Producer:
    """`replispec produce`, which is given numbers, and tries each message once."""

    process: subprocess.Popen[bytes]
    path: Path
    sent: int = 0
    _read: int = 0
    _rest: bytes = b""
    came: list[Line] = field(default_factory=list)

    def send(self) -> None:
        """One more message, and hear what came of others."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"%d\n" % self.sent)
        self.process.stdin.flush()
        self.sent += 1
        with self.path.open("rb") as file:
            file.seek(self._read)
            data = file.read()
        self._read += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        self.came += map(json.loads, lines)

    def acknowledged(self) -> Mapping[int, tuple[int, int]]:
        """Where each message is that was acknowledged."""
        stored = [each for each in self.came if each["status"] == "SEND_OK"]
        return {_number(each["number"]): (_number(each["queue"]), _number(each["offset"])) for each in stored}


class Table:
    """One move of the table, on a cluster that runs."""

    def __init__(self, cluster: Cluster, move: Move) -> None:
        self._cluster = cluster
        self._move = move
        self._producer = _produce(cluster, move)
        self._moves = 0
        self._lost = ""
        self._starts: set[int] = set()

    def prepare(self) -> None:
        """Every broker has held the queue; of a static topic one leads nothing."""
        for _ in range(3 if self._move.is_contiguous else 1):
            self._flows()
            self._done(_next(self._move, self._moves).words)
            self._moves += 1

    def steps(self) -> Sequence[Step]:
        """The requests of a run to which nothing happens."""
        _, steps, wrong = self._moved(None)
        if wrong:
            raise LabError(f"{self._move.name}, nobody died: {'; '.join(wrong)}")
        return steps

    def play(self, row: Row) -> list[str]:
        """What was wrong when somebody died there. A run that failed before, as one does that a busy machine
        lets wait, is no run of this row."""
        for _ in range(TRIES_MAX):
            is_struck, _, wrong = self._moved(row)
            if is_struck or wrong:
                return wrong
        return ["there was no such step"]

    def close(self) -> None:
        """End its producer, whatever happened."""
        self._producer.process.kill()
        self._producer.process.wait()

    def end(self) -> tuple[str, list[str]]:
        """What clients saw, and what was wrong with it."""
        producer = self._producer
        assert producer.process.stdin is not None
        producer.process.stdin.close()
        producer.process.wait(END_S)
        producer.came += [json.loads(each) for each in _tail(producer)]
        clients = Clients(dict(producer.acknowledged()), starts=self._starts)
        for each in _consumed(self._cluster, self._move):
            place = _number(each["queue"]), _number(each["offset"])
            clients.read.append((place, _number(each["body"])))
        failed = producer.sent - len(clients.acknowledged)
        undecided = sum(offset < 0 for _, offset in clients.acknowledged.values())
        said = (
            f"{producer.sent} messages sent, {failed} of them failed, {undecided} acknowledged without an"
            f" offset; {len(clients.read)} read"
        )
        return said, list(clients.faults(self._move))

    # One move

    def _moved(self, row: Row | None) -> tuple[bool, Sequence[Step], list[str]]:
        places = _next(self._move, self._moves)
        self._moves += 1
        self._flows()
        if self._move is AGAIN:
            self._until(lambda: self._expired(places.target), f"an expired queue of {places.target}", END_S)
        words = self._loses(places) if self._move.is_lost else places.words
        with ExitStack() as stack:
            gate, ended = self._first_run(replace(places, words=words), row, stack)
        wrong: list[str] = []
        if row is None and ended:
            wrong.append("the command failed, and nobody died")
        is_unknown = self._move.is_lost and row is not None and Party.NAME_SERVER in row.dead
        wrong += self._finished(words, UNKNOWN if is_unknown else None)
        if self._move.is_lost:
            self._lost = ""
            start(self._cluster, places.source, self._move)
            wrong += self._finished(places.words)
        wrong += self._agreed(places.target)
        self._flows()
        return gate.struck.is_set(), gate.steps.found, wrong

    def _loses(self, places: Places) -> Sequence[str]:
        """The source is gone; the command line that says where its queue goes on."""
        self._lost = places.source
        self._cluster.kill(self._lost)
        self._pause()
        given = [offset for queue, offset in self._producer.acknowledged().values() if queue == 0]
        goes_on = max([*given, *self._starts]) + AHEAD
        self._starts.add(goes_on)
        return (*places.words, "-fd", str(goes_on))

    def _finished(self, words: Sequence[str], but: str | None = None) -> list[str]:
        """What is wrong with the same command, typed once more when everybody is there who is not lost;
        `but`: what it may be refused with."""
        self._wait_there()
        said = _admin(self._cluster, LOOPBACK, words)
        if not said.returncode or (but is not None and but in said.stderr):
            return []
        return [f"the command cannot be finished: {said.stderr.strip()[-300:]}"]

    def _first_run(self, places: Places, row: Row | None, stack: ExitStack) -> tuple[Gate, int]:
        """A run, and its exit code; who died is there again."""
        cluster = self._cluster
        parties = {cluster.port(name): Party.OTHER for name in BROKERS}
        parties[cluster.port(NAME_SERVER)] = Party.NAME_SERVER
        parties |= {cluster.port(places.source): Party.SOURCE, cluster.port(places.target): Party.TARGET}
        running: list[subprocess.Popen[str]] = []

        dead = row.dead if row is not None else frozenset()
        servers = [places.name(each) for each in sorted(dead - {Party.ADMINISTRATOR}, key=str)]

        def kill() -> None:
            for each in servers:
                cluster.kill(each)
            if Party.ADMINISTRATOR in dead:
                running[0].send_signal(signal.SIGKILL)

        gate = stack.enter_context(Gate(parties, row, kill))
        running.append(_started(cluster, OUTSIDE, places.words))
        administrator = stack.enter_context(running[0])
        stack.callback(administrator.kill)
        until_s = time.monotonic() + COMMAND_S
        while administrator.poll() is None:
            if time.monotonic() > until_s:
                raise LabError(f"{' '.join(places.words)}: not within {COMMAND_S:g} s")
            while servers and gate.struck.is_set():
                start(cluster, servers.pop(), self._move)
            self._pause()
        while servers and gate.struck.is_set():
            start(cluster, servers.pop(), self._move)
        return gate, administrator.returncode

    def _pause(self) -> None:
        self._producer.send()
        time.sleep(PAUSE_S)

    def _until(self, is_so: Callable[[], bool | None], what: str, patience_s: float) -> None:
        def attempt() -> bool | None:
            self._pause()
            return is_so()

        self._cluster.until(attempt, what, patience_s=patience_s)

    def _flows(self) -> None:
        """Each logical queue takes messages."""
        first = self._producer.sent

        def reached() -> bool | None:
            acknowledged = self._producer.acknowledged()
            queues = {place[0] for number, place in acknowledged.items() if number >= first}
            return len(queues) == QUEUES or None

        self._until(reached, "messages of each logical queue", END_S)

    def _wait_there(self) -> None:
        """All brokers take messages, and the name server knows them; but for one that is lost."""
        there = [name for name in BROKERS if name != self._lost]
        for name in there:
            self._until(lambda name=name: _serves(self._cluster, name), f"{name} again", END_S)  # type: ignore[misc]
        self._until(lambda: _known(self._cluster, there), "brokers at the name server", END_S)

    def _agreed(self, target: str) -> list[str]:
        """What is wrong with what is held; a name server hears it a little later."""
        cluster = self._cluster
        addresses = {name: cluster.address(name) for name in BROKERS}
        wrong: list[str] = []

        def agreed() -> bool | None:
            name_server = cluster.address(NAME_SERVER)
            wrong[:] = faults_of_mapping(self._move, _ask, addresses, name_server, target)
            return not wrong or None

        try:
            self._until(agreed, "a mapping", AGREED_S)
        except LabError as error:
            return wrong or [str(error)]
        return []

    def _expired(self, name: str) -> bool | None:
        """Whether a broker has messages of the queue no more; other messages make it delete them."""
        with Peer(LOOPBACK, self._cluster.port(name)) as peer:
            sender = questions.Sender(peer, PROBE)
            for _ in range(2 * FILE_BYTES // FILLER_BYTES):
                sender.send(bytes(FILLER_BYTES), queue=0)
        return states(_ask, self._cluster.address(name), self._move) == {EXPIRED} or None

    def _done(self, words: Sequence[str]) -> None:
        said = _admin(self._cluster, LOOPBACK, words)
        if said.returncode:
            raise LabError(f"{' '.join(words)}: {said.stderr.strip()}")


# ---- the cluster ---------------------------------------------------------------------------------


def start(cluster: Cluster, name: str, move: Move) -> None:
    """A server, for the first time or again."""
    more = {**SOONER, **(YOUNG if move is AGAIN else {})}
    if name == CONTROLLER:
        cluster.start(OURS, "controller", name, settings.controller(cluster, scanNotActiveBrokerInterval=500))
    elif name == NAME_SERVER:
        cluster.start(OURS, "nameserver", name, settings.nameserver(cluster))
    else:
        cluster.start(OURS, "broker", name, settings.broker(cluster, name, brokerName=name, **more))


def _ask(address: str, code: RequestCode, header: Header) -> Command:
    host, _, port = address.rpartition(":")
    with Peer(host, int(port)) as peer:
        return peer.ask(code, header)


def _serves(cluster: Cluster, name: str) -> bool | None:
    with Peer(LOOPBACK, cluster.port(name)) as peer:
        code, _ = questions.Sender(peer, PROBE).send(b"probe", queue=0)
    return code == ResponseCode.SUCCESS or None


def _known(cluster: Cluster, brokers: Sequence[str] = BROKERS) -> bool | None:
    port = cluster.port(NAME_SERVER)
    return all(questions.routed(port, name).get(0) for name in brokers) or None


# ---- programs ------------------------------------------------------------------------------------


def _command(cluster: Cluster, host: str, words: Sequence[str]) -> tuple[list[str], Mapping[str, str]]:
    variables = environment(TMPDIR=str(cluster.part("tmp")))
    return [*CLI, "admin", *words, "-n", f"{host}:{cluster.port(NAME_SERVER)}"], variables


def _started(cluster: Cluster, host: str, words: Sequence[str]) -> subprocess.Popen[str]:
    command, variables = _command(cluster, host, words)
    with (cluster.part("log") / "administrator.out").open("ab") as output:
        return subprocess.Popen(
            command, env=variables, stdin=subprocess.DEVNULL, stdout=output, stderr=output, text=True
        )


def _admin(cluster: Cluster, host: str, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    command, variables = _command(cluster, host, words)
    return subprocess.run(
        command, env=variables, capture_output=True, text=True, timeout=COMMAND_S, check=False
    )


def _produce(cluster: Cluster, move: Move) -> Producer:
    path = cluster.part("clients") / f"{move.topic}.jsonl"
    words = ("produce", "-t", move.topic, "--format", "json", "--lines")
    command = [*CLI, *words, "-n", cluster.address(NAME_SERVER)]
    with path.open("wb") as output, path.with_suffix(".err").open("wb") as errors:
        process = subprocess.Popen(
            command, env=environment(), stdin=subprocess.PIPE, stdout=output, stderr=errors
        )
    return Producer(process, path)


def _tail(producer: Producer) -> Sequence[bytes]:
    with producer.path.open("rb") as file:
        file.seek(producer._read)
        return (producer._rest + file.read()).splitlines()


def _consumed(cluster: Cluster, move: Move) -> Sequence[Line]:
    words = ("consume", "-t", move.topic, "--format", "json", "--idle", IDLE_S)
    command = [*CLI, *words, "-n", cluster.address(NAME_SERVER)]
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, timeout=5 * END_S, check=False
    )
    if done.returncode:
        raise LabError(f"consume: {done.stderr.strip()[-300:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def _number(value: object) -> int:
    return int(str(value))


# ---- the table -----------------------------------------------------------------------------------


def main() -> int:
    """Exit code 0: every row was right."""
    parser = argparse.ArgumentParser(prog="make kills-queues", description=__doc__)
    parser.add_argument("--each", type=int, default=1, help="play every so many one of the rows")
    parser.add_argument("--move", choices=[*MOVES], help="this kind of move alone")
    parser.add_argument("--only", help="rows whose text has this part")
    parser.add_argument("--questions", action="store_true", help="crashes at requests that only ask, too")
    parser.add_argument("--two-die", action="store_true", help="rows at which two die, in place of one")
    parser.add_argument("--from", dest="first", type=int, default=1, help="begin with this row of each move")
    parser.add_argument("--minutes", type=float, default=40.0, help="begin no row after so many minutes")
    parser.add_argument(
        "--out", type=Path, default=Path("out/kills-queues"), help="in place of an earlier run's"
    )
    arguments = parser.parse_args()
    end_in_order()
    began_s = time.monotonic()
    failed = 0
    try:
        for move in MOVES.values() if arguments.move is None else [MOVES[arguments.move]]:
            Cluster.remove_earlier(arguments.out)
            with Cluster(arguments.out) as cluster:
                _start(cluster, move)
                failed += _played(cluster, move, arguments, began_s + 60 * arguments.minutes)
    except LabError as error:
        print(f"kills-queues: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("kills-queues: interrupted; all of its processes are ended", file=sys.stderr)
        return 130
    print(f"{'every row was right' if not failed else f'{failed} wrong'}: {time.monotonic() - began_s:.0f} s")
    return 1 if failed else 0


def _start(cluster: Cluster, move: Move) -> None:
    for name in (CONTROLLER, NAME_SERVER, *BROKERS):
        start(cluster, name, move)
    for name in BROKERS:
        cluster.until(lambda name=name: _serves(cluster, name), f"{name} that serves")  # type: ignore[misc]
    cluster.until(lambda: _known(cluster), "brokers at the name server")
    words: Sequence[str]
    if move.is_contiguous:
        words = ("updateTopic", "-t", move.topic, "-c", CLUSTER_NAME, "-r", "1", "-w", "1", "-lq", "true")
    else:
        words = ("updateStaticTopic", "-t", move.topic, "-qn", str(QUEUES), "-b", ",".join(BROKERS))
    said = _admin(cluster, LOOPBACK, words)
    if said.returncode:
        raise LabError(f"{' '.join(words)}: {said.stderr.strip()}")


def _played(cluster: Cluster, move: Move, arguments: argparse.Namespace, until_s: float) -> int:
    """How many rows were wrong; each is told as it ends, and all as a table."""
    table = Table(cluster, move)
    try:
        return _rows_played(table, move, arguments, until_s)
    finally:
        table.close()


def _rows_played(table: Table, move: Move, arguments: argparse.Namespace, until_s: float) -> int:
    table.prepare()
    found = list(move.rows(table.steps(), questions=arguments.questions, two_die=arguments.two_die))
    rows = [each for each in found if not arguments.only or arguments.only in str(each)]
    rows = rows[arguments.first - 1 :: arguments.each]
    came: dict[Row, list[str]] = {}
    for number, row in enumerate(rows, 1):
        if time.monotonic() > until_s:
            print(f"{move.name}: the time is over, {len(rows) - number + 1} rows are left out", flush=True)
            break
        came[row] = table.play(row)
        print(f"{move.name} {number}/{len(rows)} {row}: {'; '.join(came[row]) or 'right'}", flush=True)
    said, wrong = table.end()
    print(f"\n{move.name}: {said}{''.join(f'{chr(10)}  WRONG: {each}' for each in wrong)}")
    print("\n".join(_lines(came)), flush=True)
    return sum(map(bool, came.values())) + len(wrong)


def _lines(came: Mapping[Row, Sequence[str]]) -> Sequence[str]:
    """A row for each step and who dies, a column for each moment."""
    lines = [
        f"| step | who dies | {' | '.join(each.value for each in Moment)} |",
        "| --- | --- | --- | --- | --- |",
    ]
    for step, who, also in dict.fromkeys((row.step, row.who, row.also) for row in came):
        cells = (came.get(Row(step, who, moment, also)) for moment in Moment)
        told = ["not played" if each is None else "wrong" if each else "right" for each in cells]
        both = who.value if also is None else f"{who.value}, {also.value}"
        lines.append(f"| {step} | {both} | {' | '.join(told)} |")
    return lines


if __name__ == "__main__":
    sys.exit(main())
