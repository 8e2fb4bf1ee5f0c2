"""Our own messages: protobuf on the wire, compiled for two runtimes.

A folder below spec/proto/replispec that does not import the options of the language says nothing about
bytes on a foreign wire: its messages are ours and travel as protobuf. betterproto's plugin makes typed
dataclasses of them, protoc itself makes modules for the official runtime; a page documents each.
"""

from __future__ import annotations

import hashlib
import re
import stat
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from google.protobuf import descriptor_pb2

from replispec.compiler.check.own_messages import OwnFile, check_files, read_file
from replispec.compiler.emit.docs.own_messages import own_page
from replispec.compiler.emit.python.format import format_files
from replispec.compiler.read.descriptors import read_descriptors, run_protoc

_OPTIONS = 'import "replispec/options/'
# betterproto indents the second line of a comment by one blank more than the first.
_ODD_INDENT = re.compile(r"(?m)^((?: {4})+) (?=\S)")


def own_packages(proto: Path) -> list[str]:
    """Names of the folders below `proto`/replispec whose messages are our own, sorted."""
    folders = sorted(path for path in (proto / "replispec").iterdir() if path.is_dir())
    return [path.name for path in folders if path.name != "options" and not _on_a_foreign_wire(path)]


def _on_a_foreign_wire(folder: Path) -> bool:
    return any(_OPTIONS.encode() in path.read_bytes() for path in sorted(folder.rglob("*.proto")))


def compile_own(proto: Path, packages: Sequence[str]) -> dict[str, bytes]:
    """Every file that our own packages become: path relative to generated/ -> bytes.

    For replispec.NAME.v1: v1/messages.py by betterproto, v1/*_pb2.py and .pyi by protoc untouched.
    Raises SpecificationError for what the packages may not have.
    """
    with tempfile.TemporaryDirectory(prefix="replispec-own-") as name:
        folder = Path(name)
        files = [read_file(parsed) for parsed in parse_own(proto, packages)]
        if not files:
            return {}
        check_files(files)
        outputs = _compile(proto, files, folder)
    for package in packages:
        outputs[f"replispec/{package}/py.typed"] = b""
    for file in files:
        outputs[f"docs/{_stem(file)}.md"] = own_page(file).encode()
    return outputs


def _stem(file: OwnFile) -> str:
    return Path(file.parsed.name).stem


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


def _compile(proto: Path, files: Sequence[OwnFile], folder: Path) -> dict[str, bytes]:
    """One run of protoc: what it writes itself, and what betterproto's plugin writes."""
    official, dataclasses = folder / "official", folder / "dataclasses"
    official.mkdir()
    dataclasses.mkdir()
    plugin = folder / "protoc-gen-python_betterproto"
    plugin.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m betterproto.plugin\n', "utf-8")
    plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)
    options = [
        f"--python_out={official}",
        f"--pyi_out={official}",
        f"--plugin=protoc-gen-python_betterproto={plugin}",
        f"--python_betterproto_out={dataclasses}",
        "--python_betterproto_opt=typing.310",
    ]
    run_protoc(proto, options, [file.parsed.name for file in files])
    written = sorted(official.rglob("*_pb2.py*"))
    outputs = {path.relative_to(official).as_posix(): path.read_bytes() for path in written}
    return outputs | _dataclasses(proto, files, dataclasses)


def _dataclasses(proto: Path, files: Sequence[OwnFile], out: Path) -> dict[str, bytes]:
    """What betterproto's plugin wrote, as messages.py beside an __init__.py that imports nothing.

    The plugin makes packages all the way up; `replispec/__init__.py` would hide every other room.
    """
    texts: dict[str, str] = {}
    for file in files:
        package = file.parsed.package.replace(".", "/")
        certificate = "\n".join(_certificate(proto, file))
        text = (out / package / "__init__.py").read_text("utf-8")
        code = "\n".join(line for line in text.splitlines() if not line.startswith("# "))
        code = _ODD_INDENT.sub(r"\1", code)
        about = f'"""Messages of {file.parsed.package} as dataclasses of betterproto."""'
        texts[f"{package}/messages.py"] = f"{certificate}\n{about}\n\n{code}\n"
        package_about = f'"""{file.parsed.package}: `messages` for betterproto, `*_pb2` for protobuf."""'
        texts[f"{package}/__init__.py"] = f"{certificate}\n{package_about}\n"
    return {name: text.encode() for name, text in format_files(texts).items()}


def _certificate(proto: Path, file: OwnFile) -> Iterator[str]:
    digest = hashlib.sha256((proto / file.parsed.name).read_bytes()).hexdigest()[:16]
    yield f"# @generated by `make generate` from spec/proto/{file.parsed.name} (sha256 {digest})."
    yield "# Do not edit: change the specification, then run `make generate`."
