"""Our own messages: which folders hold them, and what they say.

A folder below spec/proto/replispec that does not import the options of the language says nothing about
bytes on a foreign wire: its messages are ours and travel as protobuf.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from google.protobuf import descriptor_pb2

from replispec.compiler.read.descriptors import read_descriptors

_OPTIONS = 'import "replispec/options/'


def own_packages(proto: Path) -> list[str]:
    """Names of the folders below `proto`/replispec whose messages are our own, sorted."""
    folders = sorted(path for path in (proto / "replispec").iterdir() if path.is_dir())
    return [path.name for path in folders if path.name != "options" and not _on_a_foreign_wire(path)]


def _on_a_foreign_wire(folder: Path) -> bool:
    return any(_OPTIONS.encode() in path.read_bytes() for path in sorted(folder.rglob("*.proto")))


def parse_own(proto: Path, packages: Sequence[str]) -> list[descriptor_pb2.FileDescriptorProto]:
    """The files of these packages. Raises SpecificationError."""
    sources = [
        path.relative_to(proto).as_posix()
        for name in packages
        for path in sorted((proto / "replispec" / name).rglob("*.proto"))
    ]
    if not sources:
        return []
    return [file for file in read_descriptors(proto, sources) if file.name in sources]
