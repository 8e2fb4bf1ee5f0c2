"""From descriptors to the texts of all message modules and documents of one family."""

from __future__ import annotations

from collections.abc import Iterable

from google.protobuf import descriptor_pb2

from replispec.compiler.check.messages import check_model
from replispec.compiler.emit.docs.messages import messages_markdown, numbers_markdown
from replispec.compiler.emit.lua.dissector import dissector_texts
from replispec.compiler.emit.python.codes import codes_text, commands_text, streams_text
from replispec.compiler.emit.python.messages import module_text
from replispec.compiler.read.protos import read_model


def compile_messages(files: Iterable[descriptor_pb2.FileDescriptorProto], family: str) -> dict[str, str]:
    """Paths below generated/ -> unformatted texts. Raises SpecificationError.

    The certificates of birth hash the descriptors without their positions: a moved line changes
    nothing, a changed word of a comment does, as it stands in the docstrings.
    """
    everything = list(files)
    model = read_model(everything, family)
    check_model(model)
    sources = {f"proto/{file.name}": _fingerprint(file) for file in everything if f"/{family}/" in file.name}
    package = f"replispec/wire/{family}"
    modules = dict.fromkeys(message.module for message in model.messages.values())
    outputs = {
        f"{package}/codes.py": codes_text(model, sources),
        f"{package}/streams.py": streams_text(model, sources),
        f"{package}/commands.py": commands_text(model, sources),
        f"{package}/__init__.py": f'"""The wire protocol of {family}, made from the specification."""\n',
        f"docs/{family}/numbers.md": numbers_markdown(model),
        **dissector_texts(model, sources),
    }
    for module in modules:
        own = {name: data for name, data in sources.items() if name.endswith(f"/{module}.proto")}
        outputs[f"{package}/{module}.py"] = module_text(model, module, own)
        outputs[f"docs/{family}/messages/{module}.md"] = messages_markdown(model, module)
    return {name: text for name, text in outputs.items() if text}


def _fingerprint(file: descriptor_pb2.FileDescriptorProto) -> bytes:
    copy = descriptor_pb2.FileDescriptorProto()
    copy.CopyFrom(file)
    for place in copy.source_code_info.location:
        place.ClearField("span")
    return copy.SerializeToString(deterministic=True)
