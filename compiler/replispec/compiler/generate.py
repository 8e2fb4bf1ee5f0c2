"""`make generate`: the specification in, everything below generated/ out.

Read, model, check, emit, in one process: protoc (from grpcio-tools) parses the messages once; the compiler
reads the rest. The output is a pure function of the specification's bytes.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from google.protobuf import descriptor_pb2

from replispec.compiler.check.families import check_families
from replispec.compiler.check.messages import check_model
from replispec.compiler.emit.data.names import names_json
from replispec.compiler.emit.messages import message_outputs
from replispec.compiler.evolution.read import read_specification
from replispec.compiler.family import check_alone, compile_family
from replispec.compiler.model.faults import attempt, collecting, whole_since
from replispec.compiler.model.message import Model, SpecificationError
from replispec.compiler.own_messages import compile_own
from replispec.compiler.read.declared import declare, read_declared
from replispec.compiler.read.descriptors import proto_files, read_descriptors
from replispec.compiler.read.own_messages import own_packages
from replispec.compiler.read.protos import fingerprints, read_model

# What the compiler owns below generated/, and replaces whole.
OWNED = ("replispec", "docs", "wireshark")


def generate(spec: Path) -> dict[str, bytes]:
    """All generated files, path below generated/ -> content, from the specification in `spec`.

    Raises SpecificationError, with the place in the specification, when it is not well formed; several
    faults are SpecificationErrors, one a line.
    """
    with collecting() as faults:
        outputs = _generate(spec)
    faults.raise_all()
    return outputs


def _generate(spec: Path) -> dict[str, bytes]:
    proto = spec / "proto"
    own = own_packages(proto)
    outputs: dict[str, bytes] = {"replispec/wire/py.typed": b""}
    files: list[descriptor_pb2.FileDescriptorProto] = []
    with attempt(gap=True):
        files = read_descriptors(proto, proto_files(proto))
    folders = (proto / "replispec").iterdir()
    families = sorted(path.name for path in folders if path.name not in {"options", *own})
    if not files:
        for family in families:
            check_alone(family, spec)
        return outputs
    models = [read_model(files, family) for family in families]
    for model in models:
        with attempt():
            declare(model, read_declared(spec, model.family))
            check_model(model)
    with attempt():
        check_families(models)
    for model in models:
        with attempt():
            outputs |= compile_family(model, spec)
        with attempt():
            whole_since(0)
            outputs |= message_outputs(model, fingerprints(files, model.family), _declared(spec, model))
    with attempt():
        outputs |= compile_own(proto, own)
    with attempt():
        whole_since(0)
        outputs["replispec/wire/names.json"] = names_json(read_specification(spec))
    return outputs


def _declared(spec: Path, model: Model) -> dict[str, bytes]:
    path = spec / model.declared.file
    return {model.declared.file: path.read_bytes()} if path.is_file() else {}


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
        sys.stderr.write("".join(f"replispec: {line}\n" for line in str(refusal).splitlines()))
        return 2
    write(outputs, options.out)
    sys.stderr.write(f"{len(outputs)} files below {options.out}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
