"""Systems as the emitters see them: checked data with parsed and typed expressions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Final

from replispec.compiler.model.binding import Each
from replispec.compiler.model.expressions import Expression, PartName, walk
from replispec.compiler.model.machine import MachineSpec, Transition, VariableSpec
from replispec.compiler.model.message import Place
from replispec.compiler.model.value_types import Type

_OF_A_PART: Final = 3
"""INSTANCE.MACHINE.VARIABLE."""
OF_EVERY_INSTANCE: Final = ("number", "armed")
"""What every instance has, whatever its system says: which one it is, and the timers that are armed."""


@dataclass(frozen=True, slots=True)
class PartSpec:
    """One machine of a party; `instance` names what it serves, where requests name it. `state` is where it
    begins, `begins` are the values of its variables there. `peers` is the party that dials it: it is one for
    each connection, and begins with it."""

    name: str
    machine: MachineSpec
    place: Place
    instance: str = ""
    state: str = ""
    begins: Mapping[str, Expression] = field(default_factory=dict)
    peers: str = ""

    def is_timer(self, name: str) -> bool:
        """Whether a name that may be read of it is a timer, which is armed or not."""
        return not self.peers and name in self.machine.timers and name not in self.machine.variables


@dataclass(frozen=True, slots=True)
class EndSpec:
    """One end of a connection: whose machine it is, and the stream of what it says."""

    party: str
    part: str
    stream: str


@dataclass(frozen=True, slots=True)
class ConnectionSpec:
    """What is between two machines, in order: the one dials, the other accepts. `opened` is the event of who
    dialled, `closed` that of either when the other end is gone."""

    name: str
    about: str
    place: Place
    dials: EndSpec
    accepts: EndSpec
    opened: str
    closed: str

    def ends(self) -> tuple[EndSpec, EndSpec]:
        """Both, who dials first."""
        return self.dials, self.accepts


@dataclass(frozen=True, slots=True)
class AsksSpec:
    """An effect sends what `says` of `machine` makes to the instances of a party; without it, a notice.

    `sent_part` is the part of the same party of which `says` is an event: that this was sent.
    """

    party: str
    machine: str
    says: str
    where: Expression | None
    is_notice: bool
    once: bool
    newest: bool
    sent_part: str = ""


@dataclass(frozen=True, slots=True)
class RaisesSpec:
    """An effect, or an act, is an event of a machine of the same party; of several messages `said` is one."""

    part: str
    event: str
    fields: Mapping[str, Expression]
    where: Expression | None
    said: str = ""


@dataclass(frozen=True, slots=True)
class AssignsSpec:
    """An effect, or an act, gives new values to what parties keep: INSTANCE.FIELD -> value."""

    values: Mapping[str, Expression]


@dataclass(frozen=True, slots=True)
class SendsSpec:
    """An effect sends what `says` of `machine` makes on a connection, with these bytes after it.

    `repeated`: as long as `where` holds, else once if it does. `once`: unless the same is on its way.
    """

    connection: str
    machine: str
    says: str
    body: Expression | None
    where: Expression | None
    repeated: bool
    once: bool


@dataclass(frozen=True, slots=True)
class ClosesSpec:
    """An effect, or an act, closes a connection at this end."""

    connection: str


@dataclass(frozen=True, slots=True)
class BeginsSpec:
    """An effect has another machine of the instance begin anew."""

    part: str


MeaningSpec = AsksSpec | RaisesSpec | AssignsSpec | SendsSpec | ClosesSpec | BeginsSpec


@dataclass(frozen=True, slots=True)
class LocalSpec:
    """What a machine's role knows: an expression, or a list with one message for each element. `told` are the
    names of what it is asked about, which the expression reads."""

    name: str
    type: Type
    value: Expression | Each
    told: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PartySpec:
    """One kind of instance; `effects` of no meaning are empty, and `reasons` say why."""

    name: str
    about: str
    place: Place
    count: int
    parts: Mapping[str, PartSpec]
    keeps: Mapping[str, VariableSpec] = field(default_factory=dict)
    local: Mapping[str, LocalSpec] = field(default_factory=dict)
    effects: Mapping[str, tuple[MeaningSpec, ...]] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RequestSpec:
    """What an act is on the wire of the subject: a message with these fields, said on the connection of the
    instance that is called `over`."""

    message: str
    fields: Mapping[str, Expression]
    body: str = ""
    body_fields: Mapping[str, Expression] = field(default_factory=dict)
    over: str = ""


@dataclass(frozen=True, slots=True)
class SuiteSpec:
    """Whose wire cases of the suite speak on: the party, the kind of subject, the part of it that is judged,
    and what texts of the system are called in a case."""

    subject: str
    kind: str
    profile: str
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ActSpec:
    """Something around the machines. `timer`: the part and the timer of it that has to be armed, and ends.
    `crash`: the instance begins again with what is durable."""

    name: str
    about: str
    place: Place
    party: str
    each: Mapping[str, str]
    condition: Expression | None
    does: tuple[str, ...]
    means: tuple[MeaningSpec, ...]
    budget: str
    quiet: bool
    forgets: bool
    timer: tuple[str, str] | None = None
    crash: bool = False
    opens: str = ""
    breaks: str = ""
    requests: tuple[RequestSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class PropertySpec:
    """What is promised: `shape` is always, eventually or pauses."""

    name: str
    about: str
    place: Place
    shape: str
    holds: Expression | None = None
    whenever: Expression | None = None
    clauses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SystemSpec:
    """One system."""

    name: str
    about: str
    place: Place
    parties: Mapping[str, PartySpec]
    acts: tuple[ActSpec, ...]
    properties: tuple[PropertySpec, ...]
    budgets: Mapping[str, int]
    messages_max: int
    within: Expression | None = None
    connections: Mapping[str, ConnectionSpec] = field(default_factory=dict)
    suite: SuiteSpec | None = None

    def read_of_machines(self) -> set[tuple[str, str]]:
        """What its expressions read of machines: a part, and a variable, state or timer of it, by name."""
        whole = (*self.parties.values(), self.acts, self.properties, self.within)
        parts = (node for node in nodes_in(whole) if isinstance(node, PartName))
        return {(node.names[1], node.names[2]) for node in parts if len(node.names) == _OF_A_PART}


def nodes_in(value: object) -> Iterator[Expression]:
    """Every node of every expression in a value, however deep; a machine in it reads for itself."""
    if isinstance(value, Expression):
        yield from walk(value)
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from nodes_in(each)
    elif isinstance(value, tuple | list | frozenset):
        for each in value:
            yield from nodes_in(each)
    elif is_dataclass(value) and not isinstance(value, type | MachineSpec | Transition):
        for one in fields(value):
            yield from nodes_in(getattr(value, one.name))
