"""protoc, run as a program: the .proto files in, descriptors with comments and positions out.

It comes from grpcio-tools, never from the system.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from google.protobuf import descriptor_pb2

from replispec.compiler.model.faults import SpecificationErrors, attempt
from replispec.compiler.model.message import SpecificationError

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
    with tempfile.TemporaryDirectory(prefix="replispec-descriptors-") as folder:
        target = Path(folder, "set")
        options = [f"--descriptor_set_out={target}", "--include_imports", "--include_source_info"]
        try:
            run_protoc(proto, options, names)
        except SpecificationError:
            # protoc stops at the first file that it cannot read: ask for each, to hear of all.
            for name in names:
                with attempt():
                    run_protoc(proto, options, [name])
            raise
        return list(descriptor_pb2.FileDescriptorSet.FromString(target.read_bytes()).file)


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
