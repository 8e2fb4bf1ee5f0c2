"""What a family declares of itself beside its messages and machines: who takes part, in which orders keys are
written, and what the dissector shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Filter:
    """One filter: `type` is string, bytes, bool, none, int32, int64, uint32, request, response (numbers
    of packets) or duration; `enum` names the values of a number."""

    name: str
    type: str
    title: str
    about: str
    enum: str = ""


@dataclass(frozen=True, slots=True)
class Protocol:
    """A protocol of Wireshark: the streams whose messages it shows (a pattern), further messages, and
    `derived`, what its dissector adds to what stands in the bytes."""

    name: str
    title: str
    streams: str
    further: tuple[str, ...]
    derived: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Dissection:
    """How a family is dissected: its protocols, the filters of extension fields, the parts of the
    dissector (files below lua/parts/) in the order of the chunk, and what these call by name: streams,
    fields by message, values by enum."""

    protocols: tuple[Protocol, ...]
    extended: str
    parts: tuple[str, ...]
    streams: tuple[str, ...]
    fields: Mapping[str, tuple[str, ...]]
    values: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Declared:
    """What `file` says: `parties` by name with what each is; `framings` by name,
    which families may share; `orders` by name, those of a hash table with its initial capacity; `rights` by
    name, of which every request of a family that has some says which it needs; `flags` by framing, the
    enum of the bits that its frames carry, whichever family speaks."""

    file: str = ""
    about: str = ""
    parties: Mapping[str, str] = field(default_factory=dict)
    framings: Mapping[str, str] = field(default_factory=dict)
    orders: Mapping[str, int] = field(default_factory=dict)
    dissection: Dissection | None = None
    rights: Mapping[str, str] = field(default_factory=dict)
    flags: Mapping[str, str] = field(default_factory=dict)
