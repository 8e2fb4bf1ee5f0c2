"""Neutral rooms know no family, and imports run in no circle."""

from pathlib import Path

import pytest

from tests.house.circles import circles, graph, of_packages, shown
from tests.house.families import knows_a_family, of_a_family
from tests.house.tree import ROOMS, ROOT, files, hand_written, module_name


def test_neutral_modules_know_no_family() -> None:
    complaints = [
        f"{inside.as_posix()}: {complaint}: move it to a folder named after the family"
        for path in hand_written(*ROOMS, "lab", "benchmarks")
        if not of_a_family(inside := path.relative_to(ROOT))
        for complaint in knows_a_family(path.read_text())
    ]
    assert complaints == []


def modules() -> dict[str, Path]:
    """Every module of the rooms by its dotted name."""
    paths = (path for room in ROOMS for path in files(f"{room}/replispec", suffix=".py"))
    return {module_name(path): path for path in paths}


def test_modules_and_packages_import_each_other_in_no_circle() -> None:
    """A package and what lies inside it count as one: whoever imports the one has the other."""
    every = modules()
    among_modules = graph(every)
    among_packages = of_packages(among_modules, every)
    found = [shown(group, edges) for edges in (among_modules, among_packages) for group in circles(edges)]
    assert found == []


@pytest.mark.parametrize(
    ("source", "complaints"),
    [
        ("import replispec.wire.rocketmq.ha\n", ["line 1: imports replispec.wire.rocketmq.ha"]),
        ("def f():\n    from replispec.wire import kafka\n", ["line 2: imports replispec.wire.kafka"]),
        ("KAFKA_PORT = 1\n", ["line 1: says KAFKA"]),
        ("x = 'apache@5.1.1'\n", ["line 1: says apache"]),
        ('"""As RocketMQ writes it."""\n', ["line 1: says RocketMQ"]),
        ('"""A log.\n\nSource: apache/rocketmq, CommitLog.\n"""\n', []),
        ("x = 1  # as Kafka has it\n", ["line 1: says Kafka"]),
        ("# Source: DLedger, MemberState.\n", []),
        ("from replispec.runtime import families\n", []),
    ],
)
def test_a_family_is_found_in_every_place_but_a_citation(source: str, complaints: list[str]) -> None:
    assert list(knows_a_family(source)) == complaints


def test_a_family_has_its_folder_in_every_room() -> None:
    assert of_a_family(Path("conformance/replispec/conformance/rocketmq/names.py"))
    assert not of_a_family(Path("conformance/replispec/conformance/rocketmq.py"))


def test_a_circle_is_found_through_types_and_late_imports(tmp_path: Path) -> None:
    sources = {
        "a.__init__": "",
        "a.one": "def f():\n    from a.two import x\n",
        "a.two": "import a.three\n",
        "a.three": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from a import one\n",
        "b.four": "import a.one\n",
    }
    paths = {name.removesuffix(".__init__"): tmp_path / f"{name}.py" for name in sources}
    for name, source in sources.items():
        (tmp_path / f"{name}.py").write_text(source)
    edges = graph(paths)
    assert [shown(group, edges) for group in circles(edges)] == [
        "a.one -> a.two; a.three -> a.one; a.two -> a.three"
    ]
    assert circles(of_packages(edges, paths)) == []
