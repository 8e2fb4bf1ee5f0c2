"""Python named tuples of the parts of BINARY messages that stand before a variable one."""

from __future__ import annotations

from collections.abc import Iterator

from replispec.compiler.emit.python.binary import constant_name
from replispec.compiler.model.layout import FixedRun, steps
from replispec.compiler.model.message import Message


def fixed_class(message: Message) -> Iterator[str]:
    """A named tuple of the part before the variable one, for readers that leave the rest where it is."""
    run = steps(message)[0]
    assert isinstance(run, FixedRun)
    yield f"class {message.name}Fixed(NamedTuple):"
    yield f'    """The first {run.size} bytes of {message.name}, field by field."""'
    yield ""
    for field in run.fields:
        kind = {"bool": "bool", "bytes": "bytes"}.get(field.type, "int")
        yield f"    {field.name}: {kind}"
    yield ""
    yield "    @classmethod"
    yield "    def decode(cls, buffer: Buffer, at: int = 0) -> Self:"
    yield '        """The fields at `buffer[at]`, unchecked. Raises RemoteProtocolError when cut."""'
    yield f"        if len(buffer) - at < {run.size}:"
    yield f'            raise cut(at, {run.size}, len(buffer), "{message.name}")'
    names = ", ".join(field.name for field in run.fields) + ("," if len(run.fields) == 1 else "")
    yield f"        {names} = {constant_name(message, 0)}.unpack_from(buffer, at)"
    values = []
    for field in run.fields:
        if field.size == 3:
            values.append(f'int.from_bytes({field.name}, "big")')
        else:
            values.append(f"{field.name} == 1" if field.type == "bool" else field.name)
    yield f"        return cls({', '.join(values)})"
    yield ""
    yield from _fixed_encode(message, run)
    yield ""
    yield "    @classmethod"
    yield "    def places(cls) -> dict[str, tuple[int, int]]:"
    yield '        """Where each field lies: its first byte in the message, and its size in bytes."""'
    yield "        return {"
    at = 0
    for field in run.fields:
        yield f'            "{field.name}": ({at}, {field.size}),'
        at += field.size
    yield "        }"


def _fixed_encode(message: Message, run: FixedRun) -> Iterator[str]:
    """The method that writes the fixed part alone, for writers that leave the rest where it is."""
    values = []
    for field in run.fields:
        if field.size == 3:
            values.append(f'self.{field.name}.to_bytes(3, "big")')
        else:
            values.append(f"int(self.{field.name})" if field.type == "bool" else f"self.{field.name}")
    yield "    def encode(self) -> bytes:"
    about = "These bytes; the rest goes behind them. Raises LocalProtocolError when a value does not fit."
    yield f'        """{about}"""'
    yield f'        return pack({constant_name(message, 0)}, "{message.name}", {", ".join(values)})'
