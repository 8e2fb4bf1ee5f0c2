"""Markdown of systems: who asks whom, what effects mean, what happens around them, what is promised."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from replispec.compiler.emit.docs.machines import RULES_PAGE, banner, clause_links
from replispec.compiler.emit.docs.tables import table
from replispec.compiler.language.text import to_english, to_text
from replispec.compiler.model.binding import Each, Value
from replispec.compiler.model.expressions import Expression
from replispec.compiler.model.system import (
    ActSpec,
    AsksSpec,
    AssignsSpec,
    BeginsSpec,
    ClosesSpec,
    ConnectionSpec,
    MeaningSpec,
    PartSpec,
    PartySpec,
    PropertySpec,
    RaisesSpec,
    SendsSpec,
    SystemSpec,
)


def system_document(system: SystemSpec, sources: Mapping[str, bytes]) -> str:
    """The Markdown page of one system."""
    return "\n".join([*banner(sources), *_page(system)])


def _page(system: SystemSpec) -> Iterator[str]:
    yield f"# {system.name}"
    yield ""
    yield system.about
    yield ""
    yield f"Explored by `replispec spec explore {system.name}`."
    yield ""
    yield from _diagram(system)
    yield "## Parties"
    rows = ((f"`{each.name}`", str(each.count), each.about) for each in system.parties.values())
    yield from table(("party", "instances", "meaning"), rows)
    for party in system.parties.values():
        yield from _party(party)
    yield from _connections(system)
    yield "## Acts"
    yield "What happens around the machines, whenever its condition holds and its budget lasts."
    yield ""
    yield from table(("act", "of", "whenever", "does", "budget", "meaning"), map(_act, system.acts))
    yield from _suite(system)
    yield from _bounds(system)
    yield "## Promises"
    yield "Beside these, every system promises that each event that reaches a machine has an edge."
    yield ""
    for each in system.properties:
        yield from _promise(each)


def _diagram(system: SystemSpec) -> Iterator[str]:
    """A mermaid flow chart: an arrow for each pair of parties, dotted for what nobody answers."""
    arrows: dict[tuple[str, str, bool], dict[str, None]] = {}
    for party in system.parties.values():
        for effect, means in party.effects.items():
            for each in means:
                if isinstance(each, AsksSpec):
                    key = (party.name, each.party, each.is_notice)
                    arrows.setdefault(key, {})[effect] = None
    for connection in system.connections.values():
        dials, accepts = connection.ends()
        arrows[dials.party, accepts.party, False] = {connection.name: None}
    yield "```mermaid"
    yield "flowchart LR"
    for party in system.parties.values():
        count = f" x {party.count}" if party.count > 1 else ""
        yield f'    {party.name}["{party.name}{count}"]'
    for (sender, to, is_notice), effects in arrows.items():
        yield f'    {sender} {"-.->" if is_notice else "-->"}|"{", ".join(effects)}"| {to}'
    yield "```"
    yield ""


def _connections(system: SystemSpec) -> Iterator[str]:
    if not system.connections:
        return
    yield "## Connections"
    yield "What is said on a connection arrives in order, until either end closes it or it breaks."
    yield ""
    rows = (_connection(each) for each in system.connections.values())
    yield from table(("connection", "dials", "accepts", "meaning"), rows)


def _connection(connection: ConnectionSpec) -> tuple[str, ...]:
    ends = (f"`{end.party}.{end.part}`, says {end.stream}" for end in connection.ends())
    return (f"`{connection.name}`", *ends, connection.about)


def _party(party: PartySpec) -> Iterator[str]:
    yield f"## {party.name}"
    rows = ((f"`{each.name}`", *_part(each)) for each in party.parts.values())
    yield from table(("called", "machine", "begins in", "with"), rows)
    if party.keeps:
        yield "It keeps, beside its machines:"
        yield ""
        kept = (
            (f"`{each.name}`", str(each.type), _text(each.initial) if each.initial else "", each.about)
            for each in party.keeps.values()
        )
        yield from table(("name", "type", "at the start", "meaning"), kept)
    if party.local:
        yield "What its machines ask of their role:"
        yield ""
        known = ((f"`local.{each.name}`", _value(each.value)) for each in party.local.values())
        yield from table(("name", "answer"), known)
    if party.effects:
        yield "What effects mean; what answers a request goes back to whoever asked."
        yield ""
        effects = (
            (f"`{name}`", "; ".join(map(_meaning, means)) or f"nothing: {party.reasons.get(name, '')}")
            for name, means in party.effects.items()
        )
        yield from table(("effect", "means"), effects)


def _part(part: PartSpec) -> tuple[str, str, str]:
    state = part.state or next(each.name for each in part.machine.states.values() if each.initial)
    begins = "; ".join(f"`{name}` {_text(node)}" for name, node in part.begins.items())
    if part.peers:
        begins = f"with each connection of a {part.peers}{f': {begins}' if begins else ''}"
    return f"[{part.machine.name}](../machines/{part.machine.name}.md)", f"`{state}`", begins


def _text(node: Expression) -> str:
    return f"`{to_text(node)}`"


def _english(node: Expression) -> str:
    return to_english(node, RULES_PAGE)


def _value(value: Value) -> str:
    if isinstance(value, Expression):
        return _text(value)
    if isinstance(value, Each):
        return f"for each of {_text(value.elements)}: {_value(value.fields)}"
    return ", ".join(f"`{name}` {_value(each)}" for name, each in value.items())


def _meaning(means: MeaningSpec) -> str:
    match means:
        case AsksSpec():
            return _asks(means)
        case RaisesSpec(part, event, fields, where, said):
            given = ", ".join(f"`{name}` {_text(node)}" for name, node in fields.items())
            only = f", if {_english(where)}" if where is not None else ""
            message = f" as {said}" if said else ""
            return f"raises `{part}.{event}`{message}{f' with {given}' if given else ''}{only}"
        case AssignsSpec(values):
            return "; ".join(f"`{name}` becomes {_text(node)}" for name, node in values.items())
        case SendsSpec():
            return _sends(means)
        case ClosesSpec(connection):
            return f"closes `{connection}`"
        case BeginsSpec(part):
            return f"`{part}` begins anew"


def _sends(means: SendsSpec) -> str:
    body = f" with {_text(means.body)} after it" if means.body is not None else ""
    word = "as long as" if means.repeated else "if"
    where = f", {word} {_english(means.where)}" if means.where is not None else ""
    once = ", unless the same is on its way" if means.once else ""
    return f"sends `{means.machine}.{means.says}`{body} on `{means.connection}`{where}{once}"


def _asks(means: AsksSpec) -> str:
    says = f" by `{means.machine}.{means.says}`" if means.says else ""
    where = f" for which {_english(means.where)}" if means.where is not None else ""
    once = ", unless the same is on its way" if means.once else ""
    newest = ", and waits no more for what it asked like this before" if means.newest else ""
    return f"{'tells' if means.is_notice else 'asks'} each {means.party}{where}{says}{once}{newest}"


def _act(act: ActSpec) -> tuple[str, ...]:
    others = "".join(f", with a {party} as `{name}`" for name, party in act.each.items())
    condition = _english(act.condition) if act.condition is not None else "always"
    quiet = "; nothing that it asked is on its way" if act.quiet else ""
    if act.timer is not None:
        ended = f"`{'.'.join(act.timer)}` is armed"
        condition = ended if act.condition is None else f"{ended} and {condition}"
    forgets = ["forgets what it asked"] * act.forgets
    begins = ["begins again with what is durable"] * act.crash
    forgets += [f"opens `{act.opens}`"] * bool(act.opens) + [f"breaks `{act.breaks}`"] * bool(act.breaks)
    does = "; ".join([*begins, *forgets, *(f"does `{each}`" for each in act.does), *map(_meaning, act.means)])
    if act.requests:
        does += f"; in a case of the suite: {', '.join(f'`{each.message}`' for each in act.requests)}"
    return f"`{act.name}`", f"{act.party}{others}", f"{condition}{quiet}", does, act.budget, act.about


def _suite(system: SystemSpec) -> Iterator[str]:
    if system.suite is None:
        return
    suite = system.suite
    yield "## Suite"
    yield (
        f"A story that the wire of `{suite.subject}` shows is a case for subjects of kind `{suite.kind}`, "
        f"profile `{suite.profile}`. What texts of the system are there:"
    )
    yield ""
    yield from table(
        ("here", "in a case"), ((f"`{here}`", f"`${name}`") for here, name in suite.values.items())
    )


def _bounds(system: SystemSpec) -> Iterator[str]:
    yield "## Bounds"
    yield "What `replispec spec explore` goes by unless it is told otherwise:"
    yield ""
    rows = [(f"`{name}`", str(count), "how often it may happen") for name, count in system.budgets.items()]
    rows.append(("messages", str(system.messages_max), "how many are on their way at once"))
    yield from table(("bound", "at most", "of what"), rows)
    if system.within is not None:
        yield f"Nothing is explored from where this does not hold: {_text(system.within)}."
        yield ""


def _promise(promise: PropertySpec) -> Iterator[str]:
    clauses = f" {clause_links(promise.clauses, '../')}" if promise.clauses else ""
    yield f"- **{promise.name}**: {promise.about}{clauses}"
    yield ""
    if promise.holds is None:
        yield "  Messages alone never go round in a circle."
    elif promise.whenever is None:
        yield f"  In every state: {_text(promise.holds)}"
    else:
        way = "a way without further harm leads to"
        yield f"  Whenever {_text(promise.whenever)}, {way} {_text(promise.holds)}"
    yield ""
