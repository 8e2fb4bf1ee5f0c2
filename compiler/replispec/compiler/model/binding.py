"""Bindings as the emitters see them: what a machine's events and answers are on the wire, and in the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from replispec.compiler.language.expressions import EnumMember, Expression
from replispec.compiler.model.message import Place, VersionRange
from replispec.compiler.model.value_types import Type


@dataclass(frozen=True, slots=True)
class Text:
    """A text with expressions in it: literal parts and expressions in turn."""

    parts: tuple[str | Expression, ...]


@dataclass(frozen=True, slots=True)
class Remark:
    """One of several texts: the first one whose condition holds; the last one has none."""

    choices: tuple[tuple[Expression | None, Text], ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request is refused with this code when the condition holds, before it is an event."""

    condition: Expression
    code: EnumMember
    remark: Remark
    place: Place


@dataclass(frozen=True, slots=True)
class Source:
    """One way in which an event comes over the wire: in a request, or as the answer to one of `asked`.

    `header` and `body` are the names of the messages that it is read from, empty where nothing is read.
    `fields` gives each field of the event, those of `needed` by what the message may leave out but must not;
    a message event has none and holds the header itself. An answer is the event when it has one of `codes`,
    when no other event names its code (`otherwise`), or when there is none that can be read (`unanswered`).
    A request is it only when `condition` holds.
    """

    event: str
    place: Place
    header: str = ""
    body: str = ""
    asked: tuple[str, ...] = ()
    codes: tuple[EnumMember, ...] = ()
    otherwise: bool = False
    unanswered: bool = False
    condition: Expression | None = None
    fields: Mapping[str, Expression] = field(default_factory=dict)
    needed: frozenset[str] = frozenset()
    instance: Expression | None = None
    refusals: tuple[Refusal, ...] = ()


@dataclass(frozen=True, slots=True)
class LocalField:
    """Something that only the role knows."""

    name: str
    type: Type
    about: str
    place: Place


Value = Expression | Mapping[str, "Value"]
"""The value of a field of an answer: an expression, or the fields of the message that it is."""


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """What an effect answers: code, header fields, body fields, a remark for people.

    An answer whose code is no success but that counts as the effect `counts_as` does so in `releases`.
    """

    effect: str
    code: EnumMember
    place: Place
    header: str = ""
    header_fields: Mapping[str, Expression] = field(default_factory=dict)
    body: str = ""
    body_fields: Mapping[str, Value] = field(default_factory=dict)
    remark: Remark | None = None
    counts_as: str = ""
    releases: VersionRange | None = None


@dataclass(frozen=True, slots=True)
class RecordForm:
    """The record of an event in the log: a case of the oneof, and which of its fields holds each field.

    `fields` maps a field of the event to one of the record, or with `envelope` to one of the message around
    it. `derived` are fields of the record that are written and never read. The record is this event when
    `marks` (an enum field and its values) fits; the first mark, or `mark_value`, is written. `recalled` are
    fields of the event that follow from what is remembered, by expressions over the variables.
    """

    event: str
    case: str
    place: Place
    fields: Mapping[str, str] = field(default_factory=dict)
    envelope: Mapping[str, str] = field(default_factory=dict)
    derived: Mapping[str, Expression] = field(default_factory=dict)
    mark: str = ""
    marks: tuple[str, ...] = ()
    mark_choice: Expression | None = None
    recalled: Mapping[str, Expression] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Bindings:
    """All that binds one machine; empty for machines that nothing binds."""

    local: Mapping[str, LocalField] = field(default_factory=dict)
    sources: tuple[Source, ...] = ()
    answers: Mapping[str, AnswerForm] = field(default_factory=dict)
    records: Mapping[str, RecordForm] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    missing: EnumMember | None = None

    @property
    def requests(self) -> tuple[Source, ...]:
        """The sources that are requests of a peer."""
        return tuple(each for each in self.sources if not each.asked)

    @property
    def outcomes(self) -> tuple[Source, ...]:
        """The sources that are what a request of this side came to."""
        return tuple(each for each in self.sources if each.asked)

    def __bool__(self) -> bool:
        return bool(self.sources or self.answers or self.records)
