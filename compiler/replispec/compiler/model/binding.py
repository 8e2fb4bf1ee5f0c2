"""Bindings as the emitters see them: what a machine's events and answers are on the wire, and in the log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from replispec.compiler.model.expressions import EnumMember, Expression
from replispec.compiler.model.message import Place, VersionRange
from replispec.compiler.model.value_types import Type


@dataclass(frozen=True, slots=True)
class Text:
    """A text with expressions in it, in turn; `lists` are those of several values."""

    parts: tuple[str | Expression, ...]
    lists: frozenset[Expression] = frozenset()


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
    A request is it only when `condition` holds, and any message only of a peer of one of `releases` (None:
    of all).
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
    releases: VersionRange | None = None


@dataclass(frozen=True, slots=True)
class LocalField:
    """Something that only the role knows; with `of`, only when it is told of what.

    `kept`: a message that is said again and again, so that the role keeps it with its bytes.
    """

    name: str
    type: Type
    about: str
    place: Place
    of: Mapping[str, Type] = field(default_factory=dict)
    kept: bool = False


@dataclass(frozen=True, slots=True)
class Each:
    """A list with one message for each element of `elements`, by which its fields read `each`."""

    elements: Expression
    fields: Mapping[str, Value]


Value = Expression | Each | Mapping[str, "Value"]
"""The value of a field: an expression, the fields of the message that it is, or those of each in a list."""


def expressions_in(values: Iterable[Value]) -> Iterator[Expression]:
    """Every expression among the values of fields, those of messages within them included."""
    for value in values:
        if isinstance(value, Expression):
            yield value
        elif isinstance(value, Each):
            yield value.elements
            yield from expressions_in(value.fields.values())
        else:
            yield from expressions_in(value.values())


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """What an effect says to a peer: an answer with its code, or a notice (`code` None) of its own.

    `event` holds the fields that every event has on which it is done. `whole` is a body that is there as it
    stands: a message, or the bytes of an answer without `body`. An answer whose code is no success
    but that counts as the effect `counts_as` does so in `releases` (None: in all). What is said to peers of
    some releases only stands under `by_release`, each with these `releases`. Who is one of `to`
    is told `instead`.
    """

    effect: str
    place: Place
    code: EnumMember | None = None
    header: str = ""
    header_fields: Mapping[str, Expression] = field(default_factory=dict)
    body: str = ""
    body_fields: Mapping[str, Value] = field(default_factory=dict)
    whole: Expression | None = None
    remark: Remark | None = None
    counts_as: str = ""
    releases: VersionRange | None = None
    by_release: Mapping[str, AnswerForm] = field(default_factory=dict)
    to: Expression | None = None
    instead: AnswerForm | None = None


@dataclass(frozen=True, slots=True)
class Payload:
    """What this side says in a message of its own: whenever `name`, an event or an effect, sends it.

    `is_fixed`: only the part of fixed size, which says how much follows; that leaves by itself.
    `whole` is the body of a command that no message describes: bytes.
    """

    name: str
    place: Place
    message: str
    fields: Mapping[str, Value]
    body: str = ""
    body_fields: Mapping[str, Value] = field(default_factory=dict)
    is_fixed: bool = False
    whole: Expression | None = None


@dataclass(frozen=True, slots=True)
class View:
    """A message that shows one instance of a machine to whoever asks of several."""

    name: str
    about: str
    place: Place
    message: str
    fields: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class ListForm:
    """How the messages of a list are recorded: each field's place, and what stands for an absent one.

    On reading, elements of which the flag `unless` is set are left out.
    """

    fields: Mapping[str, str]
    absent: Mapping[str, Expression]
    unless: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """A value of an enum of the record that tells which event it is; written when `condition` holds."""

    name: str
    number: int
    condition: Expression | None = None


@dataclass(frozen=True, slots=True)
class RecordForm:
    """The record of an event in the log: a case of the oneof, and which of its fields holds each field.

    `fields` maps a field of the event to one of the case, `around` to one of the message around it.
    `derived` are fields of the case that are written and never read. The case is this event when its field
    `mark` is one of `marks`. `recalled` are fields of the event that follow from what is remembered.
    """

    event: str
    case: str
    place: Place
    fields: Mapping[str, str] = field(default_factory=dict)
    around: Mapping[str, str] = field(default_factory=dict)
    lists: Mapping[str, ListForm] = field(default_factory=dict)
    derived: Mapping[str, Expression] = field(default_factory=dict)
    mark: str = ""
    marks: tuple[Mark, ...] = ()
    recalled: Mapping[str, Expression] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RecordLog:
    """The message that a machine's events are recorded in: the oneof of its cases, the field that names the
    instance, and what each record says beside them."""

    message: str
    oneof: str
    instance: str
    fields: Mapping[str, Expression]


@dataclass(frozen=True, slots=True)
class Bindings:
    """All that binds one machine; empty for machines that nothing binds."""

    local: Mapping[str, LocalField] = field(default_factory=dict)
    sources: tuple[Source, ...] = ()
    answers: Mapping[str, AnswerForm] = field(default_factory=dict)
    notices: Mapping[str, AnswerForm] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    log: RecordLog | None = None
    records: Mapping[str, RecordForm] = field(default_factory=dict)
    missing: EnumMember | None = None
    sends: Mapping[str, Payload] = field(default_factory=dict)
    views: Mapping[str, View] = field(default_factory=dict)

    @property
    def requests(self) -> tuple[Source, ...]:
        """The sources that are requests of a peer."""
        return tuple(each for each in self.sources if not each.asked)

    @property
    def outcomes(self) -> tuple[Source, ...]:
        """The sources that are what a request of this side came to."""
        return tuple(each for each in self.sources if each.asked)

    @property
    def has_instances(self) -> bool:
        """Whether requests name the instance that they are about."""
        return any(each.instance is not None for each in self.sources)

    @property
    def has_releases(self) -> bool:
        """Whether anything that is heard depends on the release of whoever says it."""
        return any(each.releases is not None for each in self.sources)

    @property
    def answers_by_release(self) -> bool:
        """Whether any answer depends on the release of whoever asks."""
        return any(each.by_release for each in self.answers.values())

    @property
    def is_answering(self) -> bool:
        """Whether the machine answers requests, those about one of its instances or others."""
        return self.missing is not None

    def __bool__(self) -> bool:
        return bool(self.sources or self.records or self.sends or self.views or self.is_answering)
