"""What leaves the house: the wheel, the source archive, the environment, and how they import."""

import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Sequence
from importlib.metadata import distributions
from pathlib import Path

import pytest

from replispec.runtime.version import VERSION as TOLD
from tests.house.tree import PROJECT, ROOMS, ROOT, files, module_name

NAME = PROJECT["project"]["name"]
VERSION = PROJECT["project"]["version"]
# What the core install leaves out.
EXTRAS = ("docutils", "furo", "grpc_tools", "myst_parser", "pandas", "py4j", "pyspark", "sphinx")


def test_roles_say_the_version_that_is_packed() -> None:
    assert TOLD == VERSION


def run(command: Sequence[str | Path], cwd: Path) -> str:
    """What the command prints; the test fails with its errors when it fails."""
    # A path of the checkout in PYTHONPATH would hide what a wheel lacks.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


@pytest.fixture(scope="session")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source archive of the checkout and the wheel that was built from that archive."""
    folder = tmp_path_factory.mktemp("archives")
    run([sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT], cwd=folder)
    return folder


@pytest.fixture(scope="session")
def wheel(archives: Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(archives / f"{NAME}-{VERSION}-py3-none-any.whl")


@pytest.fixture(scope="session")
def installed(archives: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel; third-party packages are borrowed from the one of this test."""
    home = tmp_path_factory.mktemp("installed")
    venv.create(home, symlinks=True)
    python = home / "bin" / "python"
    (wheel,) = archives.glob("*.whl")
    run(
        [sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", "--no-index", wheel],
        home,
    )
    own = next(home.glob("lib/python*/site-packages"))
    # Lines of a .pth that is found through another .pth are not followed: the rooms stay unseen.
    (own / "borrowed.pth").write_text(f"{Path(os.__file__).parent}\n{_site_packages()}\n")
    return home


def _site_packages() -> Path:
    return Path(pytest.__file__).parents[1]


def test_the_wheel_holds_the_files_of_every_room_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    expected = {
        path.relative_to(ROOT / room).as_posix() for room in ROOMS for path in files(f"{room}/replispec")
    }
    suite = Path("replispec/conformance")
    expected |= {
        (suite / path.relative_to(ROOT / "conformance")).as_posix() for path in files("conformance/cases")
    }
    information = f"{NAME}-{VERSION}.dist-info/"
    assert {name for name in wheel.namelist() if not name.startswith(information)} == expected
    assert {name for name in wheel.namelist() if name.startswith(information)} == {
        information + name for name in ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")
    }


def test_the_source_archive_holds_what_a_reader_and_a_builder_need(archives: Path) -> None:
    with tarfile.open(archives / f"{NAME}-{VERSION}.tar.gz") as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames()}
    assert {"README.md", "LICENSE", "CHANGELOG.md", "Makefile", "constraints.txt", "pyproject.toml"} <= names
    assert {path.relative_to(ROOT).as_posix() for path in files("spec", "tests", suffix=".py")} <= names
    assert [name for name in names if name.startswith((".venv", "out/")) or "__pycache__" in name] == []


def _modules() -> list[str]:
    paths = (path for room in ROOMS for path in files(f"{room}/replispec", suffix=".py"))
    return sorted(module_name(path) for path in paths if path.name != "__main__.py")


def _importing(modules: Sequence[str], then: str) -> str:
    return f"import importlib\nfor name in {modules!r}:\n    importlib.import_module(name)\n{then}\n"


def test_an_installed_wheel_imports_every_module(installed: Path) -> None:
    program = _importing(_modules(), "import replispec\nprint(*replispec.__path__, sep='\\n')")
    (place,) = run([installed / "bin" / "python", "-c", program], cwd=installed).splitlines()
    assert Path(place).is_relative_to(installed)


def test_what_the_core_install_runs_needs_neither_spark_nor_the_compiler(installed: Path) -> None:
    optional = ("spark", ".compiler", ".handbook")
    core = [name for name in _modules() if not any(part in name for part in optional)]
    assert len(core) > 40
    program = _importing(core, f"import sys\nprint(*(set(sys.modules) & set({EXTRAS!r})))")
    assert run([installed / "bin" / "python", "-c", program], cwd=installed).split() == []


def test_the_installed_command_tells_its_version(installed: Path) -> None:
    assert run([installed / "bin" / "replispec", "--version"], cwd=installed) == f"{NAME} {VERSION}\n"


def test_the_installed_command_explains_without_the_specification(installed: Path, tmp_path: Path) -> None:
    shown = run([installed / "bin" / "replispec", "explain", "RIP44-ALTER-1"], cwd=tmp_path)
    assert shown.startswith("clause RIP44-ALTER-1 (rocketmq)\n")
    assert "Cases of the suite (" in shown


def test_the_environment_imports_from_the_checkout() -> None:
    import replispec

    assert {Path(path) for path in replispec.__path__} == {ROOT / room / "replispec" for room in ROOMS}


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _pinned() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert [pin for pin in pins if not re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9][0-9a-z.]*", pin)] == []
    return {_canonical(name): version for name, version in (pin.split("==") for pin in pins)}


def test_everything_installed_is_pinned_and_everything_pinned_is_installed() -> None:
    unpinned = {"pip", NAME}
    found = {_canonical(each.name): each.version for each in distributions(path=[str(_site_packages())])}
    assert {name: version for name, version in found.items() if name not in unpinned} == _pinned()


def test_every_declared_dependency_is_pinned() -> None:
    extras = PROJECT["project"]["optional-dependencies"].values()
    declared = [*PROJECT["project"]["dependencies"], *(item for extra in extras for item in extra)]
    names = {_canonical(re.split(r"[<>=!~\[; ]", item)[0]) for item in declared}
    assert names - {NAME} <= set(_pinned())


def test_the_build_tool_is_pinned_alike_everywhere() -> None:
    (required,) = PROJECT["build-system"]["requires"]
    assert required == f"hatchling=={_pinned()['hatchling']}"
    assert required in PROJECT["project"]["optional-dependencies"]["dev"]
