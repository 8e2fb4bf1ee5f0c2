"""A family in an hour: a lease of one leader, from three messages, one machine and one rule.

What is written by hand lies in spec/ (the specification) and package/ (rule, node, what the suite asks);
everything else that a family has comes from the compiler and from rooms that know no family.
"""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from replispec.compiler.generate import generate, write
from replispec.conformance.cases import load
from replispec.conformance.results import CaseVerdict, RunResult
from replispec.conformance.run import RunPlan, run_on_trio
from replispec.replay.machines.stream_messages import JudgedMessage, judge_messages, read_messages
from replispec.runtime.net.clock import Clock
from replispec.runtime.net.host_shell import Addresses, Process, serve
from replispec.runtime.net.log_shell import Log
from replispec.runtime.primitives import invariants
from replispec.runtime.primitives.errors import RemoteProtocolError
from replispec.runtime.sim import NetworkConditions, World
from replispec.runtime.world import Connected, Effect, Event, Level, Member, Outbox, Received, Ticked
from tests.house.tree import ROOMS
from tests.replay.pcap_writer import pcap
from tests.sim.wiretap import Wiretap

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PYTHON_LINES_MAX = 150
KEEPER = "10.0.0.1:1000"
IDLE_S = 0.02
AGAIN_MS = 700


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The toy's specification compiled beside the language's options, and its code on the path."""
    folder = tmp_path_factory.mktemp("toy")
    shutil.copytree(HERE / "spec", folder / "spec")
    options = "proto/replispec/options"
    shutil.copytree(ROOT / "spec" / options, folder / "spec" / options)
    write(generate(folder / "spec"), folder / "generated")
    before, path = set(sys.modules), list(sys.path)
    sys.path[:0] = [str(folder / "generated"), str(HERE / "package")]
    importlib.invalidate_caches()
    yield folder
    sys.path[:] = path
    for name in set(sys.modules) - before:
        if ".toy" in name or name == "replispec.families":
            del sys.modules[name]


def module(name: str) -> Any:
    """A module of the toy, generated or by hand."""
    return importlib.import_module(f"replispec.{name}")


def keeper(address: str) -> Any:
    """The keeper as a node, with its parameters' defaults."""
    return module("families.toy.keeper").KeeperNode(address, module("wire.toy.options").KeeperOptions())


class Asker:
    """Asks for the lease again and again, and keeps what it is told."""

    def __init__(self, holder: int, stops_ms: int) -> None:
        self.listeners: Mapping[str, str] = {}
        self.answers: list[Any] = []
        self._holder, self._stops_ms = holder, stops_ms
        self._outbox = Outbox()
        self._buffer: Any = None
        self._connection, self._next_ms = 0, 0
        self._began_ms: int | None = None

    def receive(self, event: Event) -> Sequence[Effect]:
        """Dial first; ask when it is time."""
        wire, streams = module("wire.toy.lease"), module("wire.toy.streams")
        frames = importlib.import_module("replispec.runtime.primitives.frames")
        if self._began_ms is None:
            self._began_ms, self._buffer = event.now_ms, frames.FrameBuffer(streams.KEEPER)
            self._connection = self._outbox.dial(KEEPER)
        elif isinstance(event, Connected | Ticked) and event.now_ms < self._began_ms + self._stops_ms:
            self._next_ms = event.now_ms + AGAIN_MS
            self._outbox.send(self._connection, wire.LeaseAsked(self._holder).encode())
        elif isinstance(event, Received):
            for frame in self._buffer.receive(event.data):
                form = streams.KEEPER.form_at(frame, 0, len(frame))
                self.answers.append(getattr(wire, form.message).decode(frame))
        return self._outbox.take()

    def deadline_ms(self) -> int | None:
        """When it asks again."""
        began = self._began_ms or 0
        return self._next_ms if 0 < self._next_ms < began + self._stops_ms else None


def simulated(seed: int) -> tuple[list[Asker], list[Any]]:
    """Two askers, the first of which stops, and the packets between them and the keeper."""
    world = World(seed, conditions=NetworkConditions())
    tap = world.network.tap = Wiretap()
    askers = [Asker(7, 4_000), Asker(9, 20_000)]
    world.add("keeper", "10.0.0.1", lambda _: [Member("keeper", keeper(KEEPER))])
    world.start("keeper")
    for at, asker in enumerate(askers):
        name = f"asker{at}"
        world.add(name, f"10.0.1.{at}", lambda _, asker=asker: [Member("asker", asker)])  # type: ignore[misc]
        world.start(name)
        world.run_for(1_000)
    world.run_for(15_000)
    return askers, tap.packets


def judged(path: Path) -> list[JudgedMessage]:
    """The messages of a capture as steps of the keeper's machine."""
    streams, wire = module("wire.toy.streams"), module("wire.toy.lease")
    kinds = {name: getattr(wire, name) for name in ("LeaseAsked", "LeaseGranted", "LeaseRefused")}
    messages = read_messages(path, (streams.ASKER, streams.KEEPER), kinds)
    machine = module("wire.toy.machines.lease_keeper").MACHINE
    return judge_messages(machine, messages, module("families.toy.runtime"))


def test_what_is_written_by_hand_is_small() -> None:
    lines = sum(len(path.read_text().splitlines()) for path in (HERE / "package").rglob("*.py"))
    assert 0 < lines <= PYTHON_LINES_MAX


@pytest.mark.usefixtures("compiled")
def test_the_codec_reads_what_it_writes_and_refuses_the_rest() -> None:
    wire = module("wire.toy.lease")
    granted = wire.LeaseGranted(7, 3)
    assert granted.encode() == bytes.fromhex("00000002 0000000000000007 00000003")
    assert wire.LeaseGranted.decode(granted.encode()) == granted
    with pytest.raises(RemoteProtocolError):
        wire.LeaseGranted.decode(wire.LeaseRefused(7).encode())


def test_what_is_written_by_hand_is_typed(compiled: Path) -> None:
    files = [str(path) for path in (HERE / "package").rglob("*.py")]
    paths = [compiled / "generated", HERE / "package", *(ROOT / room for room in ROOMS)]
    command = [sys.executable, "-m", "mypy", "--config-file=", "--strict", "--follow-imports=silent"]
    command += ["--explicit-package-bases", f"--cache-dir={compiled / 'mypy'}"]
    environment = {**os.environ, "MYPYPATH": os.pathsep.join(map(str, paths))}
    done = subprocess.run([*command, *files], capture_output=True, text=True, check=False, env=environment)
    assert done.stdout == f"Success: no issues found in {len(files)} source files\n"


def test_the_documents_tell_of_it(compiled: Path) -> None:
    docs = compiled / "generated" / "docs" / "toy"
    assert "LeaseGranted" in (docs / "messages" / "lease.md").read_text()
    assert "GRANTING" in (docs / "machines" / "lease_keeper.md").read_text()
    assert "somebody else holds it" in (docs / "rules.md").read_text()
    assert "leaseTime" in (docs / "parameters.md").read_text()
    assert "TOY-LEASE-3" in (docs / "clauses.md").read_text()


@pytest.mark.usefixtures("compiled")
def test_the_rule_gives_what_its_examples_say() -> None:
    examples = module("wire.toy.vectors").RULES["may_lead"]["vectors"]
    may_lead = module("families.toy.runtime").may_lead
    assert [may_lead(**each["given"]) for each in examples] == [each["result"] for each in examples]
    assert len(examples) == 3


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_simulated_askers_lead_one_after_the_other(seed: int) -> None:
    first, second = simulated(seed)[0]
    assert {type(each).__name__ for each in first.answers} == {"LeaseGranted"}
    kinds = [type(each).__name__ for each in second.answers]
    turn = kinds.index("LeaseGranted")
    assert turn > 0
    assert set(kinds[:turn]) == {"LeaseRefused"}
    assert set(kinds[turn:]) == {"LeaseGranted"}
    assert (first.answers[0].epoch, second.answers[-1].epoch) == (1, 2)


@pytest.mark.usefixtures("compiled")
def test_a_capture_of_it_is_judged(tmp_path: Path) -> None:
    path = tmp_path / "lease.pcap"
    path.write_bytes(pcap(simulated(1)[1]))
    found = judged(path)
    assert len(found) > 20
    assert {each.judged.verdict for each in found} == {invariants.Verdict.OK}


@pytest.mark.usefixtures("compiled")
def test_a_keeper_that_answers_twice_is_violated(tmp_path: Path) -> None:
    """The same capture up to its first refusal, which is followed by a grant that nobody asked for."""
    path = tmp_path / "lease.pcap"
    wire = module("wire.toy.lease")
    refusal, grant = wire.LeaseRefused(7).encode(), wire.LeaseGranted(9, 1).encode()
    packets = simulated(1)[1]
    at = next(at for at, packet in enumerate(packets) if packet.payload == refusal)
    path.write_bytes(pcap([*packets[:at], replace(packets[at], payload=refusal + grant)]))
    found = judged(path)
    assert [each.judged.verdict.value for each in found[-2:]] == ["ok", "violated"]
    assert found[-1].judged.says == "lease_keeper: granted is not allowed in state KEEPING"


@pytest.mark.usefixtures("compiled")
def test_the_suite_plays_its_cases_on_the_node() -> None:
    cases = load("lease-keeper", HERE / "cases")
    result = trio.run(_played, cases, clock=trio.testing.MockClock(autojump_threshold=IDLE_S))
    assert [(each.id, each.verdict) for each in result.results] == [
        (case.id, CaseVerdict.PASS) for case in cases
    ]
    assert len(cases) == 2


async def _played(cases: Any) -> RunResult:
    async with trio.open_nursery() as nursery:
        clock, stop = Clock(), trio.Event()
        log = Log(StringIO(), Level.ERROR, clock.now_us)
        members = [Member("keeper", keeper("127.0.0.1:0"))]
        run = partial(serve, members, Process(), log, clock=clock, stop=stop)
        addresses: Addresses = await nursery.start(run)
        target = {"target": addresses["keeper"]["lease"]}
        plan = RunPlan("lease-keeper", target, "ours", (1,), "seed", "tests", "", 1_700_000_000_000)
        result = await run_on_trio(plan, cases, (), None)
        stop.set()
    return result
