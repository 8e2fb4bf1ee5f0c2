"""Systems: machines composed, with what is between them and around them.

Generated modules are made of these. A world (`World` in each module) holds for every party the tuple of its
instances; an instance (a class a party) holds its number from 1, a `Configuration` for each of its
machines, what the party keeps beside them, and for each connection that it dials the number of the instance
at the other end, 0 for none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from replispec.runtime.primitives.machines import Machine
from replispec.runtime.primitives.streams import Stream

Reading = Callable[..., Any]
"""A function of the instances that it names, in their order: `self` or a name under `each`, and `world`.
What an effect means also reads the `event`, and who is told stands under `to`."""


@dataclass(frozen=True, slots=True)
class Read:
    """A function, what it is given by name, in order, and the parties of which it may read any instance.

    What a role is asked may be about something: `told` are the names of that, in the order of the question.
    """

    of: Reading
    names: tuple[str, ...] = ()
    parties: tuple[str, ...] = ()
    text: str = ""
    told: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """One machine of a party. `wire` is its module of bindings, None for none; `serves`: it answers requests
    about the instance with this name. `peers` is the party that dials it: the instance holds a tuple of
    configurations, one for each of these, in a final state where there is no connection."""

    name: str
    machine: Machine[Any, Any]
    wire: Any = None
    serves: bool = False
    instance: str = ""
    peers: str = ""


@dataclass(frozen=True, slots=True)
class ConnectionEnd:
    """One end of a connection: the party and its machine, the event that the other end is gone, the stream of
    what this end says."""

    party: str
    part: str
    closed: type[Any]
    says: Stream


@dataclass(frozen=True, slots=True)
class Connection:
    """What is between two machines: frames that arrive in order, and all of them or the first of them.

    The one that dials has the event `opened`; the machine that accepts begins with the connection.
    `messages` are the classes of all frames by their names.
    """

    name: str
    about: str
    dials: ConnectionEnd
    accepts: ConnectionEnd
    opened: type[Any]
    messages: Mapping[str, type[Any]]


@dataclass(frozen=True, slots=True)
class Asks:
    """An effect sends a request to every instance of a party for which `where` holds.

    `says` makes it, or when it is empty the party's own machine says what it tells peers that did not ask.
    `sent` are the machine of the same party, by its part, and its event that the message was sent.
    `is_notice`: nobody waits for an answer. `once`: nothing is sent while the same is on its way. `newest`:
    nobody waits any more for an answer to what was asked by this code before.
    """

    party: str
    says: Reading | None
    where: Read | None = None
    is_notice: bool = False
    once: bool = False
    newest: bool = False
    sent: tuple[str, type[Any]] | None = None


@dataclass(frozen=True, slots=True)
class Raises:
    """An effect, or a step, is an event of a machine of the same party; `event` makes it of these fields."""

    part: str
    event: Callable[..., Any]
    fields: Mapping[str, Read] = field(default_factory=dict)
    where: Read | None = None


@dataclass(frozen=True, slots=True)
class Assigns:
    """An effect, or a step, gives what a party keeps new values: (name of the instance, field) -> value."""

    values: Mapping[tuple[str, str], Read]


@dataclass(frozen=True, slots=True)
class SendsFrame:
    """An effect sends on a connection what `says` makes, with the bytes of `body` after it, if `where` holds;
    `repeated`: as long as it does. `once`: nothing is sent while the same is on its way."""

    connection: str
    says: Reading
    body: Read | None = None
    where: Read | None = None
    repeated: bool = False
    once: bool = False


@dataclass(frozen=True, slots=True)
class Closes:
    """An effect, or a step, closes a connection at this end: nothing of what is on its way to it arrives.
    Of a machine that is no end of it, every one of the instance."""

    connection: str


@dataclass(frozen=True, slots=True)
class Begins:
    """An effect has another machine of the instance begin anew, from what the instance keeps."""

    part: str


Meaning = Asks | Raises | Assigns | SendsFrame | Closes | Begins


@dataclass(frozen=True, slots=True)
class PartyKind:
    """One kind of instance. `kind` is its class, `begins` the values of its fields that differ at the start.

    `local` answers what its machines ask of their role; `effects` says what each effect means here, nothing
    for those that mean nothing. `reads` are the parties of which any of this may read an instance. `timers`
    are those that acts end, as PART.TIMER: an instance holds in `armed` which of them are. `durable` names
    what is kept and survives the process.
    """

    name: str
    about: str
    kind: type[Any]
    count: int
    parts: tuple[Part, ...]
    begins: Mapping[str, Read] = field(default_factory=dict)
    local: Mapping[str, Read] = field(default_factory=dict)
    effects: Mapping[str, tuple[Meaning, ...]] = field(default_factory=dict)
    reads: tuple[str, ...] = ()
    timers: tuple[str, ...] = ()
    durable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Act:
    """What happens around the machines: a timer, a client, an administrator, a fault.

    It happens to each instance of `party` (as `self`), with each other instance that `each` names, whenever
    `condition` holds, and as often as `budget` allows (empty: always). `quiet`: so late that nothing that it
    asked, and no answer to it, is on its way. `forgets`: nobody waits any more for an answer to what it
    asked. `timer`: one of its timers ends, as PART.TIMER, and has to be armed. `crash`: the instance begins
    again with what is durable. It `opens` a connection to the one instance that `each` names, or `breaks`
    one, with all that is on its way in it. `requests` are what it is on the wire of the suite's subject: the
    name of the instance on whose connection each is made (empty: nobody's in particular), and what makes it.
    """

    name: str
    about: str
    party: str
    each: Mapping[str, str] = field(default_factory=dict)
    condition: Read | None = None
    does: tuple[str, ...] = ()
    means: tuple[Meaning, ...] = ()
    budget: str = ""
    quiet: bool = False
    forgets: bool = False
    timer: str = ""
    crash: bool = False
    opens: str = ""
    breaks: str = ""
    requests: tuple[tuple[str, Read], ...] = ()


@dataclass(frozen=True, slots=True)
class Property:
    """What is promised. `always`: `holds` is true in every state. `eventually`: from every state in which
    `whenever` holds, and from all that follow without another fault until `holds` does, a way leads to one
    in which it does, without another fault. `pauses`: messages alone never go round in a circle."""

    name: str
    about: str
    shape: str
    holds: Read | None = None
    whenever: Read | None = None
    clauses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Suite:
    """How cases of the suite speak of a system: the party that is their subject, of which `kind` and part
    (`profile`) it is there, and what a case calls texts that the system says."""

    subject: str
    kind: str
    profile: str
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class System:
    """One system: what is composed, what may happen, what is promised, and within which bounds.

    Budgets named `lost` and `late` are of messages: one may be lost, or arrive after its sender gave up.
    `within` is asked of each state: what follows one for which it does not hold is not explored.
    """

    name: str
    family: str
    about: str
    world: type[Any]
    parties: tuple[PartyKind, ...]
    acts: tuple[Act, ...]
    properties: tuple[Property, ...]
    budgets: Mapping[str, int]
    messages_max: int
    within: Read | None = None
    connections: tuple[Connection, ...] = ()
    suite: Suite | None = None
