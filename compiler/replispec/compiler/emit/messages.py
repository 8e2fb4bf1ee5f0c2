"""Everything that the messages of one family become: codecs, numbers, streams, documents, a dissector."""

from __future__ import annotations

from collections.abc import Mapping

from replispec.compiler.check.python_names import check_module
from replispec.compiler.emit.docs.messages import messages_markdown, numbers_markdown
from replispec.compiler.emit.lua.dissector import Guests, dissector_texts
from replispec.compiler.emit.python.codes import codes_text, commands_text, streams_text
from replispec.compiler.emit.python.format import format_files
from replispec.compiler.emit.python.messages import module_text
from replispec.compiler.emit.python.rights import rights_markdown, rights_text
from replispec.compiler.model.message import Model, Place


def message_outputs(
    model: Model, sources: Mapping[str, bytes], declared: Mapping[str, bytes], guests: Guests
) -> dict[str, bytes]:
    """Paths below generated/ -> contents; `sources` are what the certificates of birth hash, by file.

    `declared` is what the family declares beside its messages, of which the dissector is made too, and of
    `guests`: others that speak a framing of the family.
    """
    package = f"replispec/wire/{model.family}"
    modules = dict.fromkeys(message.module for message in model.messages.values())
    python = {
        f"{package}/codes.py": codes_text(model, sources),
        f"{package}/streams.py": streams_text(model, sources),
        f"{package}/commands.py": commands_text(model, sources),
        f"{package}/rights.py": rights_text(model, {**sources, **declared}),
        f"{package}/__init__.py": f'"""The wire protocol of {model.family}, from its specification."""\n',
    }
    others = {
        f"docs/{model.family}/numbers.md": numbers_markdown(model),
        f"docs/{model.family}/rights.md": rights_markdown(model),
        **dissector_texts(model, {**sources, **declared}, guests),
    }
    for module in modules:
        own = {name: data for name, data in sources.items() if name.endswith(f"/{module}.proto")}
        python[f"{package}/{module}.py"] = module_text(model, module, own)
        others[f"docs/{model.family}/messages/{module}.md"] = messages_markdown(model, module)
    for module in modules:
        first = next(each for each in model.messages.values() if each.module == module)
        check_module(python[f"{package}/{module}.py"], Place(first.place.file))
    made = {**format_files({name: text for name, text in python.items() if text}), **others}
    return {name: text.encode() for name, text in made.items() if text}
