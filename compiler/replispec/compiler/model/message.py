"""The specification's messages as the emitters see them: plain data, no protobuf classes.

The protoc plugin fills it from the descriptors, the machine compiler asks it for the types of
fields, and every emitter (Python, documents) is a pure function of it. Nothing here knows a
target language.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from replispec.compiler.model.declared import Declared
from replispec.compiler.model.record import RecordMessage

BODY = "body"
"""What a field of a header may be the checksum of."""
AFTER = "after"
"""What a field may be the checksum of, or measure: all bytes after it."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands in the specification: file relative to spec/, line from 1 (0: none)."""

    file: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


class SpecificationError(Exception):
    """The specification says something that the language does not allow.

    The text names the place, the fault and what to do about it, in this order.
    """

    def __init__(self, place: Place | str, fault: str, advice: str) -> None:
        super().__init__(f"{place}: {fault}. {advice}")
        self.place = str(place)
        self.fault = fault

    @property
    def order(self) -> tuple[str, int]:
        """File and line, to sort by."""
        file, _, line = self.place.partition(":")
        return file, int(number) if (number := line.partition(":")[0]).isdecimal() else 0


@dataclass(frozen=True, slots=True)
class VersionRange:
    """Releases `first..last` of one implementation, both included; None leaves a side open."""

    implementation: str
    first: tuple[int, ...] | None
    last: tuple[int, ...] | None

    def __str__(self) -> str:
        def text(version: tuple[int, ...] | None) -> str:
            return "" if version is None else ".".join(map(str, version))

        return f"{self.implementation}@{text(self.first)}..{text(self.last)}"

    def overlaps(self, other: VersionRange) -> bool:
        """True when at least one release lies in both ranges."""
        if self.implementation != other.implementation:
            return False
        low = max(self.first or (), other.first or ())
        return all(last is None or low <= last for last in (self.last, other.last))


@dataclass(frozen=True, slots=True)
class Wider:
    """Another size or prefix (bytes) when `field & mask == equals` holds for an earlier field."""

    field: str
    mask: int
    equals: int
    size: int


@dataclass(frozen=True, slots=True)
class When:
    """A field is there only when `field`, earlier or given, lies in minimum..maximum (None: open)."""

    field: str
    minimum: int | None
    maximum: int | None


@dataclass(frozen=True, slots=True)
class Given:
    """A number first..last that a message does not hold and whoever reads or writes it must know."""

    name: str
    first: int
    last: int

    def overlaps(self, other: Given) -> bool:
        """True when some number lies in both ranges."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True, slots=True)
class Checksum:
    """CRC-32 of the field `over`, masked; a stored zero means unchecked when `zero_unchecked`."""

    over: str
    mask: int
    zero_unchecked: bool
    kind: str = "CRC_32"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message.

    `type` is int32, int64, uint32, double, bool, string, bytes, a message name or an enum name; `map_key`
    and `map_value` are set for maps (then `type` is "map"). `passes` names the numbers that a message
    of this type must be given.
    """

    name: str
    number: int
    type: str
    about: str
    place: Place
    repeated: bool = False
    map_key: str = ""
    map_value: str = ""
    is_message: bool = False
    is_enum: bool = False
    key: str = ""
    versions: VersionRange | None = None
    optional: bool = False
    size: int = 0
    prefix: int = 0
    key_prefix: int = 0
    value_prefix: int = 0
    length: str = ""
    count: int = 0
    measures: str = ""
    minimum: int | None = None
    maximum: int | None = None
    equals: int | None = None
    tells: bool = False
    wider: Wider | None = None
    when: When | None = None
    nullable: bool = False
    distinct: bool = False
    identifies: bool = False
    passes: tuple[str, ...] = ()
    checksum: Checksum | None = None
    counts: str = ""
    until: str = ""
    zigzag: bool = False
    among: tuple[int, ...] = ()
    unquoted_keys: bool = False
    object_keys: bool = False
    json_only: bool = False
    name_in_json: bool = False
    words: tuple[str, ...] = ()
    holds: str = ""
    enum: str = ""
    unit: str = ""
    clauses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AnswersFrame:
    """How the answers of a frame are read: by the request of the same `number` (empty: the oldest one) in
    the frame `frame`, whose fields `code` and `version` (empty: none) say what its body is. Where the
    answer's field `failed` is not 0 there is no body."""

    frame: str
    number: str
    code: str
    version: str
    failed: str


@dataclass(frozen=True, slots=True)
class NeededRight:
    """A right that the sender of a request must have: of what the field `of` names, when the flag `when` is
    set; both may be empty."""

    right: str
    of: str = ""
    when: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """One message with its layout and, for requests and answers, its place in the protocol.

    `hash_capacity` is that of the hash table in whose order keys are written, 0 for another order.
    `hot` says why its codec is written out field by field; empty when it is a declaration. A message that
    `opens` is the first frame of a connection. `number` stands in the frames around it where others have
    the number that pairs them.
    """

    name: str
    module: str
    about: str
    place: Place
    layout: str
    fields: tuple[Field, ...]
    also: str = ""
    codes: tuple[int, ...] = ()
    kind: str = ""
    sender: str = ""
    receiver: str = ""
    order: str = ""
    binary_order: str = ""
    hash_capacity: int = 0
    bodies: tuple[str, ...] = ()
    bare: bool = False
    fixed: int = 0
    streams: tuple[str, ...] = ()
    versions: VersionRange | None = None
    separator: str = ""
    lines: bool = False
    end_of_line: bool = False
    properties: bool = False
    given: tuple[Given, ...] = ()
    clauses: tuple[str, ...] = ()
    hot: str = ""
    head: str = ""
    places: str = ""
    needs: tuple[NeededRight, ...] = ()
    audited: bool = False
    opens: bool = False
    answers: AnswersFrame | None = None
    number: int | None = None

    @property
    def is_request(self) -> bool:
        """Whether somebody asks for something with it."""
        return bool(self.codes) and self.kind != "RESPONSE"

    @property
    def body_checksum(self) -> Field | None:
        """The field of a header that says the checksum of the body, or None."""
        return next((each for each in self.fields if each.checksum and each.checksum.over == BODY), None)

    def given_named(self, name: str) -> Given | None:
        """The given number of this name, or None."""
        return next((given for given in self.given if given.name == name), None)

    def field_named(self, name: str) -> Field | None:
        """The field with this (snake case) name, or None."""
        return next((field for field in self.fields if field.name == name), None)


@dataclass(frozen=True, slots=True)
class EnumValue:
    """One value of an enum: proto name, number, name on the wire, and where it holds."""

    name: str
    number: int
    wire_name: str
    about: str
    place: Place
    versions: VersionRange | None = None
    clauses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Enum:
    """An enum; `values` excludes an UNSPECIFIED 0, which protobuf demands and nobody sends.

    `codes` marks the one enum of a family whose values name messages.
    """

    name: str
    module: str
    about: str
    place: Place
    values: tuple[EnumValue, ...]
    codes: bool = False


@dataclass(slots=True)
class Model:
    """All messages and enums of one family, by name; `records` are the messages and enums of our own,
    `constants` the values of what spec/constants names, `keywords` the last parameters
    of each rule, those that a call names."""

    family: str
    messages: dict[str, Message] = field(default_factory=dict)
    enums: dict[str, Enum] = field(default_factory=dict)
    declared: Declared = field(default_factory=Declared)
    records: Mapping[str, RecordMessage] = field(default_factory=dict)
    constants: Mapping[str, int | str] = field(default_factory=dict)
    keywords: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
