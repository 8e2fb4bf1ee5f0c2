"""`make generate`: the specification in, everything below generated/ out.

protoc (from grpcio-tools, never a system one) parses the messages and runs our plugin; the machine
compiler takes the rest. The output is a pure function of the specification's bytes.
"""

from __future__ import annotations

import argparse
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from google.protobuf import descriptor_pb2

from replispec.compiler.emit.python.format import format_files
from replispec.compiler.family import compile_family
from replispec.compiler.model.message import SpecificationError
from replispec.compiler.read.own_messages import compile_own, own_packages
from replispec.compiler.read.protos import read_model

# What the compiler owns below generated/, and replaces whole.
OWNED = ("replispec", "docs", "wireshark")


def generate(spec: Path) -> dict[str, bytes]:
    """All generated files, path below generated/ -> content, from the specification in `spec`.

    Raises SpecificationError, with the place in the specification, when it is not well formed.
    """
    own = own_packages(spec / "proto")
    outputs: dict[str, bytes] = {"replispec/wire/py.typed": b""}
    for family in sorted(
        path.name for path in (spec / "proto/replispec").iterdir() if path.name not in {"options", *own}
    ):
        outputs |= _generate_family(spec, family)
    return outputs | compile_own(spec / "proto", own)


def _generate_family(spec: Path, family: str) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory(prefix="replispec-generate-") as folder:
        files = _run_protoc(spec / "proto", family, Path(folder))
        out = Path(folder, "out")
        texts = {
            str(path.relative_to(out)): path.read_text("utf-8")
            for path in sorted(out.rglob("*"))
            if path.is_file()
        }
    python = {name: text for name, text in texts.items() if name.endswith(".py")}
    outputs = {name: text.encode() for name, text in {**texts, **format_files(python)}.items()}
    return {**outputs, **compile_family(read_model(files, family), spec)}


def _run_protoc(proto: Path, family: str, folder: Path) -> Iterable[descriptor_pb2.FileDescriptorProto]:
    """Run protoc with our plugin, output below folder/out; the parsed files with their comments."""
    out, descriptors, plugin = folder / "out", folder / "descriptors", folder / "protoc-gen-replispec"
    out.mkdir()
    plugin.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m replispec.compiler.plugin\n', "utf-8")
    plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)
    files = sorted(str(path.relative_to(proto)) for path in (proto / "replispec" / family).rglob("*.proto"))
    command = [
        sys.executable,
        "-m",
        "grpc_tools.protoc",
        f"-I{proto}",
        "--include_imports",
        "--include_source_info",
    ]
    command += [f"--descriptor_set_out={descriptors}", f"--plugin=protoc-gen-replispec={plugin}"]
    command += [f"--replispec_out={family}:{out}", *files]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        raise _refusal(done.stderr)
    return list(descriptor_pb2.FileDescriptorSet.FromString(descriptors.read_bytes()).file)


def _refusal(words: str) -> SpecificationError:
    """protoc's (or our plugin's) first complaint as our error."""
    first = next((line for line in words.splitlines() if line.strip()), "protoc failed without a word")
    text = first.removeprefix("--replispec_out: ")
    place, _, fault = text.partition(": ")
    if first.startswith("--replispec_out: "):
        fault, _, advice = fault.rpartition(". ")
        return SpecificationError(place, fault, advice)
    advice = "see docs/specification.md for the options of the language"
    return SpecificationError(f"proto/{place}", fault.rstrip("."), advice)


def write(outputs: dict[str, bytes], target: Path) -> None:
    """Replace what the compiler owns below `target` by `outputs`; nothing else is touched."""
    for owned in OWNED:
        shutil.rmtree(target / owned, ignore_errors=True)
    for name, content in outputs.items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def main() -> int:
    """Command line: `python -m replispec.compiler.generate [--spec DIR] [--out DIR]`."""
    parser = argparse.ArgumentParser(description="Compile the specification into code and documents.")
    parser.add_argument("--spec", type=Path, default=Path("spec"), help="folder of the specification")
    parser.add_argument("--out", type=Path, default=Path("generated"), help="folder to write below")
    options = parser.parse_args()
    try:
        outputs = generate(options.spec)
    except SpecificationError as refusal:
        sys.stderr.write(f"replispec: {refusal}\n")
        return 2
    write(outputs, options.out)
    sys.stderr.write(f"{len(outputs)} files below {options.out}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
