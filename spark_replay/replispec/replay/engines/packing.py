"""A packed environment: what workers that have no replispec import, in one file that Spark ships.

A .tar.gz of this process's own packages: replispec, and of each distribution that it requires the files
that are imported. So workers run the very versions that run here. Python and Spark itself are not in it:
workers have Spark, and a Python of the same version (C extensions are made for one).
"""

from __future__ import annotations

import hashlib
import io
import re
import sys
import sysconfig
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

import orjson

from replispec.replay.engines.cluster import ClusterError

NAME = "replispec"
# The file in a packed environment that says whose it is; it is the first.
MANIFEST = "replispec-packed.json"
MANIFEST_BYTES_MAXIMUM = 1 << 16
# What of the extras is needed where frames are decoded; Spark's own package is that of the worker.
_EXTRA = "spark"
_NOT_PACKED = frozenset({"pyspark", "py4j"})
_UNUSED_FOLDERS = frozenset({"__pycache__", "tests", "include"})
_UNUSED_ENDINGS = (".pyc", ".pyx", ".pxd", ".pxi", ".h", ".a", ".pyi")
_REQUIREMENT = re.compile(r"^([A-Za-z0-9][\w.-]*)[^;]*(?:;(.*))?$")
_OF_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")


@cache
def identity() -> str:
    """What tells this replispec and this Python from any other: two that say the same judge alike."""
    digest = hashlib.sha256()
    for name, path in sorted(_own_files()):
        digest.update(f"{name}\0".encode())
        digest.update(path.read_bytes())
    return f"{sysconfig.get_platform()}-{sys.implementation.cache_tag}-{digest.hexdigest()[:16]}"


def pack(into: Path) -> int:
    """Write the packed environment, and say how many files are in it. Raises OSError.

    The file takes its name when it is whole.
    """
    files = dict([*_required_files(), *_own_files()])
    manifest = orjson.dumps({"identity": identity(), "packages": sorted(_versions())})
    unfinished = into.with_name(f".{into.name}.unfinished")
    try:
        with tarfile.open(unfinished, "w:gz", compresslevel=1) as archive:
            about = tarfile.TarInfo(MANIFEST)
            about.size = len(manifest)
            archive.addfile(about, io.BytesIO(manifest))
            for name, path in sorted(files.items()):
                archive.add(path.resolve(), name, recursive=False)
        unfinished.replace(into)
    finally:
        unfinished.unlink(missing_ok=True)
    return len(files)


def check_packed(packed: Path) -> None:
    """Refuse what is no packed environment of this very replispec. Raises ClusterError, OSError."""
    try:
        with tarfile.open(packed, "r:gz") as archive:
            about = archive.next()
            file = archive.extractfile(about) if about is not None and about.name == MANIFEST else None
            said = orjson.loads(file.read(MANIFEST_BYTES_MAXIMUM)) if file is not None else None
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise ClusterError(f"{packed} is no packed environment: {error}") from error
    found = said.get("identity") if isinstance(said, dict) else None
    if found is None:
        raise ClusterError(f"{packed} is no packed environment: make one by replispec pack")
    if found != identity():
        raise ClusterError(
            f"{packed} holds another replispec than this one ({found}, {identity()}): pack it again"
        )


def _own_files() -> Iterator[tuple[str, Path]]:
    """The files of replispec, by their names below a folder of packages."""
    spec = find_spec(NAME)
    return _importable(
        PurePosixPath(NAME), [Path(each) for each in (spec and spec.submodule_search_locations) or ()]
    )


def _importable(name: PurePosixPath, folders: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """The files below folders that are one package, by their names: those that an import would take.

    A worker may have a replispec of its own behind the packed one.
    """
    found: dict[str, list[Path]] = {}
    for path in (path for folder in folders if folder.is_dir() for path in folder.iterdir()):
        found.setdefault(path.name, []).append(path)
    for own, paths in found.items():
        inner = name / own
        below = [path for path in paths if path.is_dir()]
        if below:
            whole = next((path for path in below if (path / "__init__.py").is_file()), None)
            yield from _importable(inner, below if whole is None else [whole])
        elif _is_used(inner):
            yield str(inner), paths[0]


def _required_files() -> Iterator[tuple[str, Path]]:
    for found in _required().values():
        for file in found.files or ():
            if ".." not in file.parts and _is_used(file):
                path = Path(str(found.locate_file(file)))
                if path.is_file():
                    yield str(file), path


def _is_used(name: PurePosixPath) -> bool:
    return not _UNUSED_FOLDERS.intersection(name.parts) and not name.name.endswith(_UNUSED_ENDINGS)


def _versions() -> Iterator[str]:
    return (f"{name}=={found.version}" for name, found in _required().items())


@cache
def _required() -> dict[str, Distribution]:
    """The distributions that replispec requires, and those that they require, by name.

    Raises PackageNotFoundError for one that is missing and always required.
    """
    found: dict[str, Distribution] = {}
    wanted = list(_requirements(distribution(NAME).requires or (), extra=_EXTRA))
    while wanted:
        name, is_sure = wanted.pop()
        if name in found or name in _NOT_PACKED:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            if is_sure:
                raise
            continue
        wanted += _requirements(found[name].requires or ())
    return found


def _requirements(said: Iterable[str], extra: str = "") -> Iterator[tuple[str, bool]]:
    """The names of what is required without extras or by this one, and whether it is so everywhere.

    What only some systems require is there where it was installed.
    """
    for each in said:
        parts = _REQUIREMENT.match(each)
        if parts is None:
            continue
        marker = parts[2] or ""
        if all(of == extra for of in _OF_EXTRA.findall(marker)):
            yield parts[1].lower().replace("_", "-"), not marker
