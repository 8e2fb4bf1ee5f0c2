"""`make kills-queues`: whoever dies at a step of a move of logical queues costs nothing, with real processes.

Three brokers, a name server and a controller; a producer sends all the while. A command moves a queue;
at one of its requests the administrator, the source, the target or the name server is killed with -9, or two
of them (--two-die). Servers are started again, and the same command is typed once more, which must finish the
move. A source that is lost (--move lost) is dead before the command, and comes back after it. Which rows
there are, and what must be true after each, is shared with simulated worlds (`crash_rows`).
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from lab.cluster import CLUSTER_NAME, Cluster, end_in_order
from lab.errors import LabError
from lab.ports import LOOPBACK
from lab.rocketmq import questions, settings
from lab.rocketmq.crash_gate import OUTSIDE, Gate
from lab.rocketmq.crash_judge import (
    EXPIRED,
    Clients,
    faults_of_mapping,
    kept_offsets,
    states,
    where_it_begins_is_told,
)
from lab.rocketmq.crash_results import Results
from lab.rocketmq.crash_rows import AGAIN, LOST, NEW, REMAPPED, UNKNOWN, Move, Party, Row, Step
from lab.rocketmq.kills_programs import (
    COMMAND_S,
    END_S,
    NAME_SERVER,
    consumed,
    number_of,
    producing,
    typed,
    typing,
)
from lab.rocketmq.peer import Peer
from lab.rocketmq.roles import OURS
from replispec.runtime.primitives.headers import Header
from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.codes import RequestCode, ResponseCode

BROKERS: Final = ("broker1", "broker2", "broker3")
CONTROLLER, PROBE, MODULE = "controller", "ProbeTopic", "lab.rocketmq.kills_queues"
QUEUES: Final = 3
AGREED_S: Final = 60.0
TRIES_MAX: Final = 3
PAUSE_S: Final = 0.02
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


class Table:
    """One move of the table, on a cluster that runs."""

    def __init__(self, cluster: Cluster, move: Move) -> None:
        self._cluster = cluster
        self.move = move
        self._producer = producing(cluster, move)
        self._moves = 0
        self._lost = ""
        self._starts: set[int] = set()

    def prepare(self) -> None:
        """Every broker has held the queue; of a static topic one leads nothing."""
        for _ in range(3 if self.move.is_contiguous else 1):
            self._flows()
            self._done(_next(self.move, self._moves).words)
            self._moves += 1

    def steps(self) -> Sequence[Step]:
        """The requests of a run to which nothing happens."""
        _, steps, wrong = self._moved(None)
        if wrong:
            raise LabError(f"{self.move.name}, nobody died: {'; '.join(wrong)}")
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

    def end(self) -> tuple[Mapping[str, int], list[str]]:
        """How many messages clients sent and read, and what was wrong with it. Raises LabError."""
        producer = self._producer
        producer.end()
        clients = Clients(dict(producer.acknowledged()), starts=self._starts)
        for each in consumed(self._cluster, self.move):
            place = number_of(each["queue"]), number_of(each["offset"])
            clients.read.append((place, number_of(each["body"])))
        if self.move.expires:
            addresses = {name: self._cluster.address(name) for name in BROKERS}
            clients.kept = kept_offsets(self.move, _ask, addresses)
        failed = producer.sent - len(clients.acknowledged)
        undecided = sum(offset < 0 for _, offset in clients.acknowledged.values())
        told = {"sent": producer.sent, "failed": failed, "undecided": undecided, "read": len(clients.read)}
        return told, list(clients.faults(self.move))

    # One move

    def _moved(self, row: Row | None) -> tuple[bool, Sequence[Step], list[str]]:
        places = _next(self.move, self._moves)
        self._moves += 1
        self._flows()
        if self.move is AGAIN:
            self._until(lambda: self._expired(places.target), f"an expired queue of {places.target}", END_S)
        words = self._loses(places) if self.move.is_lost else places.words
        with ExitStack() as stack:
            gate, ended = self._first_run(replace(places, words=words), row, stack)
        wrong: list[str] = []
        if row is None and ended:
            wrong.append("the command failed, and nobody died")
        is_unknown = self.move.is_lost and row is not None and Party.NAME_SERVER in row.dead
        wrong += self._finished(words, UNKNOWN if is_unknown else None)
        if self.move.is_lost:
            self._lost = ""
            start(self._cluster, places.source, self.move)
            wrong += self._finished(places.words)
        wrong += self._agreed(places.target)
        self._flows()
        return gate.struck.is_set(), gate.steps.found, wrong

    def _loses(self, places: Places) -> Sequence[str]:
        """The source is gone; the command line that says where its queue goes on."""
        # One that goes before a name server heard where it begins is a row of simulated worlds.
        name_server = self._cluster.address(NAME_SERVER)
        told = partial(where_it_begins_is_told, self.move, _ask, name_server, places.source)
        self._until(lambda: told() or None, f"where the queue begins at {places.source}", AGREED_S)
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
        said = typed(self._cluster, LOOPBACK, words)
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
        running.append(typing(cluster, OUTSIDE, places.words))
        administrator = stack.enter_context(running[0])
        stack.callback(administrator.kill)
        until_s = time.monotonic() + COMMAND_S
        while administrator.poll() is None:
            if time.monotonic() > until_s:
                raise LabError(f"{' '.join(places.words)}: not within {COMMAND_S:g} s")
            while servers and gate.struck.is_set():
                start(cluster, servers.pop(), self.move)
            self._pause()
        while servers and gate.struck.is_set():
            start(cluster, servers.pop(), self.move)
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
            wrong[:] = faults_of_mapping(self.move, _ask, addresses, name_server, target)
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
        return states(_ask, self._cluster.address(name), self.move) == {EXPIRED} or None

    def _done(self, words: Sequence[str]) -> None:
        said = typed(self._cluster, LOOPBACK, words)
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
    parser.add_argument("--minutes", type=float, default=240.0, help="begin no row after so many minutes")
    parser.add_argument("--resume", action="store_true", help="rows that were right before are not played")
    parser.add_argument("--side-by-side", type=int, default=1, help="so many clusters at once share the rows")
    parser.add_argument("--part", type=_part, default=(1, 1), help="of the rows, part K/N alone")
    parser.add_argument(
        "--out", type=Path, default=Path("out/kills-queues"), help="in place of an earlier run's"
    )
    parser.add_argument("--results", type=Path, help="a line for each row as it ends; else OUT.jsonl")
    arguments = parser.parse_args()
    path = arguments.results or arguments.out.with_suffix(".jsonl")
    results = Results(path, is_resumed=arguments.resume)
    moves = [*MOVES.values()] if arguments.move is None else [MOVES[arguments.move]]
    began_s = time.monotonic()
    try:
        if arguments.side_by_side > 1:
            _shared(arguments, results)
        else:
            end_in_order()
            for move in moves:
                _played(move, arguments, results, began_s + 60 * arguments.minutes)
    except LabError as error:
        print(f"kills-queues: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("kills-queues: interrupted; all of its processes are ended, --resume goes on", file=sys.stderr)
        return 130
    if arguments.part == (1, 1):
        print("\n".join(results.lines([each.name for each in moves])))
    told = "every row was right" if results.are_right else "not every row was right"
    print(f"{told}: {time.monotonic() - began_s:.0f} s", flush=True)
    return 0 if results.are_right else 1


def _part(text: str) -> tuple[int, int]:
    number, _, count = text.partition("/")
    return int(number), int(count)


def _shared(arguments: argparse.Namespace, results: Results) -> None:
    """The rows are dealt out to processes with a cluster each, which write to one file of results."""
    count = arguments.side_by_side
    common = (*sys.argv[1:], "--side-by-side", "1", "--resume", "--results", str(results.path))
    own = [("--part", f"{each}/{count}", "--out", f"{arguments.out}-{each}") for each in range(1, count + 1)]
    running = [subprocess.Popen([sys.executable, "-m", MODULE, *common, *each]) for each in own]
    # Ctrl-C reaches them as it reaches this process: they end their clusters, and are waited for.
    try:
        codes = [each.wait() for each in running]
    except KeyboardInterrupt:
        for each in running:
            each.wait()
        raise
    results.load()
    if any(code not in {0, 1} for code in codes):
        raise LabError(f"parts ended with {codes}")


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
    said = typed(cluster, LOOPBACK, words)
    if said.returncode:
        raise LabError(f"{' '.join(words)}: {said.stderr.strip()}")


def _played(move: Move, arguments: argparse.Namespace, results: Results, until_s: float) -> None:
    """All rows of a move, those behind a wrong one on a cluster that knows nothing of it."""
    tried: set[Row] = set()
    is_over = False
    while not is_over:
        Cluster.remove_earlier(arguments.out)
        with Cluster(arguments.out) as cluster:
            _start(cluster, move)
            table = Table(cluster, move)
            try:
                is_over = _rows_played(table, arguments, results, until_s, tried)
            finally:
                table.close()


def _rows_played(
    table: Table, arguments: argparse.Namespace, results: Results, until_s: float, tried: set[Row]
) -> bool:
    """Whether all were played that are to be; not those behind one that was wrong. `tried`: in this run."""
    move = table.move
    table.prepare()
    found = list(move.rows(table.steps(), questions=arguments.questions, two_die=arguments.two_die))
    rows = [each for each in found if not arguments.only or arguments.only in str(each)]
    number, count = arguments.part
    rows = rows[arguments.first - 1 :: arguments.each][number - 1 :: count]
    results.expect(move.name, rows)
    played: list[Row] = []
    is_wrong = False
    left = [each for each in rows if each not in tried and not results.is_right(move.name, each)]
    for row in left:
        if is_wrong or time.monotonic() > until_s:
            break
        began_s = time.monotonic()
        try:
            wrong = table.play(row)
        except LabError as error:
            wrong = [f"broken off: {error}"]
        results.add(move.name, row, wrong, time.monotonic() - began_s)
        tried.add(row)
        is_wrong = bool(wrong)
        played += [row] * (not is_wrong)
    try:
        told, wrong = table.end()
    except LabError as error:
        told, wrong = {}, [f"what they saw is not known: {error}"]
    # Behind a row that was wrong clients see what was wrong with it.
    results.add_clients(move.name, played, told, [] if is_wrong else wrong)
    return not is_wrong


if __name__ == "__main__":
    sys.exit(main())
