"""Imports run one way: primitives <- generated <- framing, rules <- replay <- command line."""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.house.families import of_a_family
from tests.house.rules import (
    called_builtins,
    forbidden_imports,
    imports,
    request_codes,
    unbounded_digits,
    values_by_hand,
    wire_keys,
    within,
)
from tests.house.tree import PROJECT, ROOMS, ROOT, files, hand_written, module_name, shown

PRIMITIVES = "replispec.runtime.primitives"
WIRE = "replispec.wire"
FAMILIES = "replispec.runtime.families"
DOCUMENTS = "replispec.runtime.documents"
OWN_MESSAGES = ("replispec.adapter", "replispec.event", "replispec.trace")
# The world: a core is handed time, bytes and random numbers, it never fetches them.
WORLD = (
    "asyncio",
    "datetime",
    "io",
    "multiprocessing",
    "os",
    "pathlib",
    "random",
    "secrets",
    "selectors",
    "shutil",
    "signal",
    "socket",
    "ssl",
    "subprocess",
    "tempfile",
    "threading",
    "time",
    "trio",
    "urllib",
    "uuid",
)
# How a group agrees on one log: below all roles, and no family's but its own.
AGREEMENT = "replispec.runtime.raft"
WORLD_CALLS = ("breakpoint", "eval", "exec", "input", "open", "print")
# Beside the rooms: no part of the package, and nothing in it may know it.
LAB = "lab"
NETWORK = ("asyncio", "random", "secrets", "socket", "ssl", "time", "trio", "urllib")
COMMAND_LINE = ("click", "rich")
SPARK = ("pandas", "py4j", "pyspark")
COMPILING = ("grpc_tools", "yaml")
# Runtimes of protobuf stand after the seams of DOCUMENTS: only our own messages travel as protobuf.
PROTOBUF = ("betterproto", "google.protobuf")
SEAMS = {"betterproto": f"{DOCUMENTS}.betterproto_seam", "google.protobuf": f"{DOCUMENTS}.official_seam"}


def is_shell(path: Path) -> bool:
    """Whether a file of a role may reach the world: *_shell.py, and all of net/."""
    name = module_name(path)
    in_a_role = path.is_relative_to(ROOT / "roles")
    return in_a_role and (name.endswith("_shell") or within(name, ("replispec.runtime.net",)))


@cache
def _modules() -> tuple[tuple[Path, str, bool], ...]:
    """Every module of the rooms and the lab, its name, whether it is a shell: listed once for all layers."""
    inside = (path for room in (*ROOMS, LAB) for path in files(room, suffix=".py"))
    return tuple((path, module_name(path), is_shell(path)) for path in inside)


@dataclass(frozen=True)
class Layer:
    """A package, the packages of the house it may import, and what else it may not."""

    package: str
    own: tuple[str, ...]
    banned: tuple[str, ...]
    pure: bool = False
    shells: bool = False

    def paths(self) -> list[Path]:
        """The files of this package in the room that holds it."""
        return [
            path for path, name, shell in _modules() if within(name, (self.package,)) and shell is self.shells
        ]


ROLES = (
    "replispec.controller",
    "replispec.nameserver",
    "replispec.metastore",
    "replispec.broker",
    "replispec.learner",
    "replispec.administrator",
)
# A name server may hold a controller in its process, and so may brokers that stand for it.
BESIDE = {
    "replispec.nameserver": ("replispec.controller.rocketmq.process",),
    "replispec.broker": ("replispec.controller.kafka.process",),
}
# The parts of the runtime that roles are built of: pure, and free to know each other.
RUNTIME_PARTS = (
    "adapting",
    "world",
    "storage",
    "configuration",
    "sim",
    "seeing",
    "version",
    "rocketmq.seeing",
    "rocketmq.access",
    "rocketmq.client",
    "rocketmq.remoting",
    "rocketmq.log",
    "rocketmq.replication",
    "rocketmq.membership",
    "rocketmq.parameters",
    "rocketmq.derived_options",
    "zookeeper.client",
    "kafka.asking",
    "kafka.batches",
    "kafka.log",
    "kafka.questions",
    "kafka.stores",
)
PARTS = tuple(f"replispec.runtime.{name}" for name in RUNTIME_PARTS)
BELOW_ROLES = (
    "replispec.runtime.rocketmq.framing",
    "replispec.runtime.rocketmq.rules",
    "replispec.runtime.rocketmq.queues",
    "replispec.runtime.kafka.rules",
    "replispec.runtime.zookeeper.rules",
    AGREEMENT,
    DOCUMENTS,
    *OWN_MESSAGES,
    FAMILIES,
    WIRE,
    PRIMITIVES,
)
_ANYTHING_ELSE = (*COMMAND_LINE, *SPARK, *COMPILING, *PROTOBUF)
LAYERS = (
    Layer("replispec.compiler", ("replispec.compiler",), (*NETWORK, *COMMAND_LINE, *SPARK)),
    Layer(PRIMITIVES, (PRIMITIVES,), (*WORLD, *_ANYTHING_ELSE), pure=True),
    Layer(WIRE, (WIRE, PRIMITIVES), (*WORLD, *_ANYTHING_ELSE), pure=True),
    # Finds what belongs to a family by its name, and is the only one that does.
    Layer(FAMILIES, (FAMILIES,), (*WORLD, *_ANYTHING_ELSE), pure=True),
    # Our own messages, which protobuf's tools generate, and what reads and writes them.
    *(
        Layer(package, (package,), (*WORLD, *COMMAND_LINE, *SPARK, *COMPILING), pure=True)
        for package in OWN_MESSAGES
    ),
    # And YAML, of files that people write for a running process.
    Layer(DOCUMENTS, (DOCUMENTS, PRIMITIVES), (*WORLD, *COMMAND_LINE, *SPARK, "grpc_tools"), pure=True),
    Layer(
        "replispec.runtime.rocketmq.framing",
        ("replispec.runtime.rocketmq.framing", WIRE, PRIMITIVES),
        (*WORLD, *_ANYTHING_ELSE),
        pure=True,
    ),
    *(
        Layer(rules, (rules, WIRE, PRIMITIVES), (*WORLD, *_ANYTHING_ELSE), pure=True)
        for rules in (
            "replispec.runtime.rocketmq.rules",
            "replispec.runtime.kafka.rules",
            "replispec.runtime.zookeeper.rules",
        )
    ),
    Layer(
        "replispec.runtime.rocketmq.queues",
        ("replispec.runtime.rocketmq.queues", "replispec.runtime.rocketmq.rules", WIRE, PRIMITIVES),
        (*WORLD, *_ANYTHING_ELSE),
        pure=True,
    ),
    Layer(AGREEMENT, (AGREEMENT, f"{WIRE}.raft", PRIMITIVES), (*WORLD, *_ANYTHING_ELSE), pure=True),
    *(
        Layer(f"replispec.runtime.{name}", (*BELOW_ROLES, *PARTS), (*WORLD, *_ANYTHING_ELSE), pure=True)
        for name in RUNTIME_PARTS
    ),
    *(
        Layer(
            package,
            (package, *BELOW_ROLES, *PARTS, *BESIDE.get(package, ())),
            (*WORLD, *_ANYTHING_ELSE),
            pure=True,
        )
        for package in ROLES
    ),
    # What carries a node's effects out, for a part of the runtime or for one role.
    *(
        Layer(package, (package, "replispec.runtime", WIRE, *OWN_MESSAGES), _ANYTHING_ELSE, shells=True)
        for package in ("replispec.runtime", *ROLES)
    ),
    Layer(
        "replispec.replay",
        ("replispec.replay", *BELOW_ROLES),
        (*NETWORK, *COMMAND_LINE, *COMPILING, *PROTOBUF),
    ),
    # Steps machines and calls rules, which it finds by family; its clock is handed in.
    Layer(
        "replispec.explorer",
        ("replispec.explorer", FAMILIES, WIRE, PRIMITIVES),
        (*WORLD, *_ANYTHING_ELSE),
        pure=True,
    ),
    # The suite judges by what is specified: rules and roles would be our own reading of it.
    Layer(
        "replispec.conformance",
        (
            "replispec.conformance",
            # Which ports somebody on this machine has chosen is no reading of a protocol.
            "replispec.runtime.adapting.ports_shell",
            "replispec.runtime.rocketmq.framing",
            "replispec.adapter",
            DOCUMENTS,
            FAMILIES,
            WIRE,
            PRIMITIVES,
        ),
        ("asyncio", "urllib", *COMMAND_LINE, *SPARK, "grpc_tools", *PROTOBUF),
    ),
    # Reads what the compiler and the suite read, and steps what was generated.
    Layer(
        "replispec.handbook",
        ("replispec.handbook", "replispec.compiler", "replispec.conformance", FAMILIES, WIRE, PRIMITIVES),
        (*NETWORK, *COMMAND_LINE, *SPARK, "grpc_tools", "betterproto"),
    ),
    Layer("replispec.cli", ("replispec",), (*NETWORK, *SPARK, *COMPILING, *PROTOBUF)),
    # Starts and stops programs, ours too; speaks their protocol through the specification alone.
    Layer(
        LAB,
        (
            "replispec.runtime.rocketmq.framing",
            # How a request is signed is the specification's, with vectors.
            "replispec.runtime.rocketmq.rules.signatures",
            "replispec.runtime.adapting",
            # Folders of logs that real programs take over, and that they leave.
            "replispec.runtime.kafka.batches",
            "replispec.runtime.kafka.log",
            "replispec.runtime.storage",
            "replispec.adapter",
            "replispec.compiler.read",
            FAMILIES,
            WIRE,
            PRIMITIVES,
        ),
        ("asyncio", "trio", "urllib", *COMMAND_LINE, *SPARK, "grpc_tools", *PROTOBUF),
    ),
)
# The rooms of the replay: each imports only those that stand before it.
REPLAY = (
    "capture",
    "tcp",
    "hosts",
    "frames",
    "pairing",
    "events",
    "machines",
    "judges",
    "report",
    "engines",
    "watch",
    "redact",
)
# Where positions in bytes are the subject; everything else goes through generated codecs.
STRUCT_ALLOWED = (PRIMITIVES, WIRE)


def reads_captures(path: Path) -> bool:
    """Whether a file reads captures and packets: their formats are not those of the specification."""
    readers = ("capture", "tcp.packets", "tcp.network", "tcp.tunnels", "tcp.unopened", "tcp.rewritten")
    return module_name(path).startswith(tuple(f"replispec.replay.{name}" for name in readers))


@pytest.mark.parametrize("room", REPLAY)
def test_a_room_of_the_replay_imports_only_those_before_it(room: str) -> None:
    before = [f"replispec.replay.{name}" for name in REPLAY[: REPLAY.index(room) + 1]]
    inside = [path for path in files("spark_replay", suffix=".py") if within(module_name(path), before[-1:])]
    assert inside
    complaints = [
        f"{shown(path)}: imports {name}"
        for path in inside
        for _, name in imports(path.read_text())
        if within(name, ("replispec.replay",)) and not within(name, tuple(before))
    ]
    assert complaints == []


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.package)
def test_a_package_imports_only_what_lies_below_it(layer: Layer) -> None:
    complaints = [
        f"{shown(path)}: {complaint}"
        for path in layer.paths()
        for complaint in forbidden_imports(path.read_text(), layer.own, layer.banned)
    ]
    assert complaints == []


@pytest.mark.parametrize("layer", [layer for layer in LAYERS if layer.pure], ids=lambda layer: layer.package)
def test_a_pure_package_calls_nothing_that_reaches_the_world(layer: Layer) -> None:
    complaints = [
        f"{shown(path)}: {complaint}"
        for path in layer.paths()
        for complaint in called_builtins(path.read_text(), WORLD_CALLS)
    ]
    assert complaints == []


def test_roles_read_the_digits_of_a_text_up_to_a_bound() -> None:
    roles = [room for room in ROOMS if room.startswith("roles/") and room != "roles/runtime"]
    complaints = [
        f"{shown(path)}: {complaint}"
        for path in hand_written(*roles)
        for complaint in unbounded_digits(path.read_text())
    ]
    assert len(roles) > 1
    assert complaints == []


def test_no_room_imports_what_lies_beside_the_rooms() -> None:
    complaints = [
        f"{shown(path)}: line {line}: imports {name}"
        for path in hand_written(*ROOMS)
        for line, name in imports(path.read_text())
        if within(name, (LAB, "benchmarks", "tests"))
    ]
    assert complaints == []


def test_every_package_belongs_to_a_layer() -> None:
    packages = [layer.package for layer in LAYERS]
    inside = [path for room in ROOMS for path in files(room, suffix=".py")]
    assert [shown(path) for path in inside if not within(module_name(path), packages)] == []


def test_only_the_spark_engine_knows_spark() -> None:
    complaints = [
        f"{shown(path)}: line {line}: imports {name}"
        for path in hand_written("spark_replay", "cli")
        if "spark" not in path.stem
        for line, name in imports(path.read_text())
        if within(name, SPARK)
    ]
    assert complaints == []


@pytest.mark.parametrize("runtime", SEAMS)
def test_each_runtime_of_protobuf_stands_behind_its_seam(runtime: str) -> None:
    """The compiler reads descriptors and generated code is made for its runtime; nobody else knows one."""
    inside = [path for path in hand_written(*ROOMS) if not module_name(path).startswith("replispec.compiler")]
    knowing = {
        module_name(path)
        for path in inside
        for _, name in imports(path.read_text())
        if within(name, (runtime,))
    }
    assert knowing == {SEAMS[runtime]}


def test_struct_stays_where_bytes_are_the_subject() -> None:
    complaints = [
        f"{shown(path)}: line {line}: imports {name}"
        for path in hand_written(*ROOMS)
        if not within(module_name(path), STRUCT_ALLOWED) and not reads_captures(path)
        for line, name in imports(path.read_text())
        if within(name, ("struct",))
    ]
    assert complaints == []


def test_wire_keys_and_request_codes_are_spelt_only_in_the_specification() -> None:
    from replispec.wire.rocketmq.codes import WIRE_KEYS, RequestCode

    codes = {int(code) for code in RequestCode}
    assert len(codes) > 20, "the generated codes are not what this test needs"
    assert any(key != key.lower() for key in WIRE_KEYS)
    complaints = [
        f"{shown(path)}: {complaint}"
        for path in hand_written(*ROOMS)
        if not reads_captures(path)
        for complaint in (
            *wire_keys(path.read_text(), WIRE_KEYS),
            *request_codes(path.read_text(), codes),
        )
    ]
    assert complaints == []


def test_a_role_keeps_no_number_text_or_time_of_a_protocol_by_hand() -> None:
    """Rules are algorithms that golden examples pin; what they are made of stands there."""
    complaints = [
        f"{shown(path)}: {complaint}"
        for path in hand_written("roles")
        if of_a_family(path.relative_to(ROOT)) and "rules" not in path.parts
        for complaint in values_by_hand(path.read_text())
    ]
    assert complaints == []


def test_no_test_sleeps_or_looks_at_the_clock() -> None:
    complaints = [
        f"{shown(path)}: line {line}: imports {name}"
        for path in hand_written("tests")
        for line, name in imports(path.read_text())
        if within(name, ("time", "timeit"))
    ]
    assert complaints == []


@pytest.mark.parametrize(
    ("config", "packages"),
    [
        (
            "roles/ruff.toml",
            [
                PRIMITIVES,
                DOCUMENTS,
                "replispec.runtime.rocketmq.framing",
                "replispec.runtime.rocketmq.rules",
                *PARTS,
                *ROLES,
                WIRE,
                *OWN_MESSAGES,
            ],
        ),
        ("compiler/ruff.toml", ["replispec.compiler"]),
        ("spark_replay/ruff.toml", ["replispec.replay"]),
        ("explorer/ruff.toml", ["replispec.explorer"]),
        ("conformance/ruff.toml", ["replispec.conformance"]),
        ("handbook/ruff.toml", ["replispec.handbook"]),
        ("cli/ruff.toml", ["replispec.cli"]),
    ],
)
def test_the_linter_bans_what_the_layers_ban(config: str, packages: list[str]) -> None:
    """The editor shows the ban while one types; this test keeps its list equal to the layers above."""
    tidy = tomllib.loads((ROOT / config).read_text())["lint"]["flake8-tidy-imports"]
    accidental = set(PROJECT["tool"]["ruff"]["lint"]["flake8-tidy-imports"]["banned-api"])
    banned = {
        name for layer in LAYERS if layer.package in packages and not layer.shells for name in layer.banned
    }
    assert set(tidy["banned-api"]) == banned | accidental
    assert tidy["ban-relative-imports"] == "all"
