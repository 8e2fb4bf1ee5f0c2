"""The Markdown page of golden bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from replispec.compiler.emit.docs.machines import banner
from replispec.compiler.emit.docs.tables import table
from replispec.compiler.model.example import Example


def examples_document(examples: Sequence[Example], sources: Mapping[str, bytes]) -> str:
    """The Markdown page of all examples: groups of bytes with their meaning."""
    lines = [*banner(sources), "# Messages byte by byte", ""]
    lines += ["Derived by hand from the documents. Every implementation reads and writes them so.", ""]
    for example in examples:
        given = "".join(f", {name} {number}" for name, number in example.given.items())
        lines += [f"## {example.name}", f"`{example.message}`{given}; {len(example.data)} bytes.", ""]
        lines += table(
            ("bytes", "what they are"), ((f"`{data.hex(' ')}`", why) for data, why in example.groups)
        )
    return "\n".join(lines)
