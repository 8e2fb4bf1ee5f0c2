"""protoc, run as a program: the .proto files in, descriptors with comments and positions out.

It comes from grpcio-tools, never from the system.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from google.protobuf import descriptor_pb2

from replispec.compiler.model.faults import SpecificationErrors, attempt
from replispec.compiler.model.message import SpecificationError

_IMPORT = re.compile(rb"""\bimport\s*(?:public\b|weak\b)?\s*["']([^"']+)["']""")
_ADVICE = "see docs/specification.md for the options of the language"


def read_descriptors(proto: Path, sources: Iterable[str]) -> list[descriptor_pb2.FileDescriptorProto]:
    """The files `sources` (relative to `proto`) and what they import, parsed in one run.

    Raises SpecificationError with protoc's complaint.
    """
    names = sorted(sources)
    for name in names:
        try:
            (proto / name).read_text("utf-8")
        except UnicodeDecodeError as error:
            raise SpecificationError(f"proto/{name}", "the file is not UTF-8", "save it as UTF-8") from error
    contents = proto_contents(proto)
    try:
        found = _descriptor_set(needed(contents, names), tuple(names))
    except SpecificationError:
        # protoc stops at the first file that it cannot read: ask for each, to hear of all.
        for name in names:
            with attempt():
                _descriptor_set(needed(contents, [name]), (name,))
        raise
    return list(descriptor_pb2.FileDescriptorSet.FromString(found).file)


Contents = tuple[tuple[str, bytes], ...]
"""Files by name, sorted."""
REMEMBERED: Final = 256
"""Answers of protoc that are kept, by all that it read: a process that compiles copies, as tests do, asks for
the same again and again."""


def proto_contents(proto: Path) -> Contents:
    """All that protoc may read below `proto`."""
    return tuple((name, (proto / name).read_bytes()) for name in proto_files(proto))


def needed(contents: Contents, names: Sequence[str]) -> Contents:
    """Of these files those with such names, and what they import, directly or through others.

    What protoc answers depends on nothing else: an edit of another file asks it nothing anew.
    """
    known, wanted, waiting = dict(contents), set[str](), list(names)
    while waiting:
        name = waiting.pop()
        if name in known and name not in wanted:
            wanted.add(name)
            waiting += [each.decode("utf-8", "replace") for each in _IMPORT.findall(known[name])]
    return tuple(each for each in contents if each[0] in wanted)


def unpack(contents: Contents, proto: Path) -> None:
    """Write files below `proto`."""
    for name, content in contents:
        (proto / name).parent.mkdir(parents=True, exist_ok=True)
        (proto / name).write_bytes(content)


@lru_cache(maxsize=REMEMBERED)
def _descriptor_set(contents: Contents, names: tuple[str, ...]) -> bytes:
    with tempfile.TemporaryDirectory(prefix="replispec-descriptors-") as folder:
        proto, target = Path(folder, "proto"), Path(folder, "set")
        unpack(contents, proto)
        run_protoc(
            proto, [f"--descriptor_set_out={target}", "--include_imports", "--include_source_info"], names
        )
        return target.read_bytes()


def proto_files(proto: Path) -> list[str]:
    """All .proto files below `proto`, relative to it, sorted."""
    return sorted(path.relative_to(proto).as_posix() for path in proto.rglob("*.proto"))


def run_protoc(proto: Path, options: Sequence[str], sources: Sequence[str]) -> None:
    """Run protoc. Raises SpecificationError with its complaint."""
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{proto}", *options, *sources]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        raise _refusal(proto, done.stderr)


def _refusal(proto: Path, words: str) -> SpecificationError:
    lines = [line for line in words.splitlines() if ".proto:" in line] or words.strip().splitlines()
    found = []
    for line in lines or ["protoc failed without a word"]:
        place, _, fault = line.partition(": ")
        place = f"proto/{place.removeprefix(f'{proto}/')}"
        found.append(SpecificationError(place, fault.rstrip("."), _ADVICE))
    return found[0] if len(found) == 1 else SpecificationErrors(found)
