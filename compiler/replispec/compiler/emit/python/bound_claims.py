"""What an answer claims: the inverse of the answers, for whoever watches.

A field that is a variable tells it; one that is a variable under a condition, or else absent, tells it when
it is there. All else of an answer tells nothing of the variables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from replispec.compiler.emit.python.binding_words import BOUND, BindingWords, parameters
from replispec.compiler.emit.python.bound_releases import RELEASES, releases_text
from replispec.compiler.emit.python.tree import (
    ABC,
    TYPING,
    Constant,
    FunctionDef,
    Node,
    own,
)
from replispec.compiler.model import expressions as ex
from replispec.compiler.model.binding import AnswerForm, Value
from replispec.compiler.model.machine import MachineSpec

_GIVEN = ("ext_fields: ExtFields", "data: bytes")
_CLAIMS = f"dict[str, {TYPING.Any}]"


def claim_nodes(machine: MachineSpec, words: BindingWords) -> Iterator[Node]:
    """What reads the claims of answers and notices."""
    bindings = machine.bindings
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, form in {**bindings.answers, **bindings.notices}.items():
        lines = tuple(_reader(form, machine))
        if lines:
            alike.setdefault(lines, []).append(name)
    readers: dict[str, str] = {}
    for lines, names in alike.items():
        reader = f"_claims_of_{'_or_'.join(names)}"
        readers |= dict.fromkeys(names, reader)
        yield FunctionDef(reader, parameters(_GIVEN, lines), _CLAIMS, lines)
    yield FunctionDef("_nothing", parameters(_GIVEN, ()), _CLAIMS, ["return {}"])
    about = (
        "What the answer to a request says, by the event that the request is; None when none answers so."
        "\n\nCode 0 grants, and so does a refusal that counts as another answer. Raises\n"
        "RemoteProtocolError when the answer cannot be read."
    )
    inside = [
        "found = _CLAIMS.get((asked, code))",
        "if found is None:",
        "    return None",
        "effects, accepted, read = found",
        f"return {BOUND.Claims}(effects, accepted, read(ext_fields, data))",
    ]
    given = ", ".join((f"asked: type[{TYPING.Any}]", "code: int", *_GIVEN))
    yield FunctionDef("claims_of", given, f"{BOUND.Claims} | None", inside, about)
    yield from _tables(machine, words, readers)


def _tables(machine: MachineSpec, words: BindingWords, readers: Mapping[str, str]) -> Iterator[Node]:
    """The tables from what was asked, and from what is noticed, to their readers."""
    bindings, final = machine.bindings, TYPING.Final
    rows = []
    for (event, number), forms in _by_code(machine, words).items():
        effects = ", ".join(repr(form.effect) for form in forms)
        accepted = number == 0 or any(form.counts_as for form in forms)
        found = {readers.get(form.effect, "_nothing") for form in forms}
        reader = found.pop() if len(found) == 1 else "_nothing"
        key = f"({words.event_class(event)}, {number})"
        rows.append(f"{key}: (frozenset(({effects},)), {accepted}, {reader}),")
    kind = f"tuple[frozenset[str], bool, {ABC.Callable}[[ExtFields, bytes], {_CLAIMS}]]"
    annotated = f"{final}[{ABC.Mapping}[tuple[type[{TYPING.Any}], int], {kind}]]"
    yield Constant("_CLAIMS", f"{{{' '.join(rows)}}}", annotated)
    rows = [f'"{name}": {readers[name]},' for name in bindings.notices if name in readers]
    if rows:
        annotated = f"{final}[{ABC.Mapping}[str, {ABC.Callable}[[ExtFields, bytes], {_CLAIMS}]]]"
        about = "What each notice says of the variables."
        yield Constant("CLAIMS_OF_NOTICES", f"{{{' '.join(rows)}}}", annotated, about)
    rows = [
        f'"{name}": ("{form.counts_as}", {releases_text(form.releases) if form.releases else None}),'
        for name, form in bindings.answers.items()
        if form.counts_as
    ]
    if rows:
        annotated = f"{final}[{ABC.Mapping}[str, tuple[str, {RELEASES.Releases} | None]]]"
        about = "Refusals that count as another answer, and the releases in which they do."
        yield Constant("COUNTS_AS", f"{{{' '.join(rows)}}}", annotated, about)


def _by_code(machine: MachineSpec, words: BindingWords) -> dict[tuple[str, int], list[AnswerForm]]:
    """The answers that an event may get, by the number of their code."""
    found: dict[tuple[str, int], list[AnswerForm]] = {}
    for effect, events in machine.effects().items():
        form = machine.bindings.answers.get(effect)
        if form is None or form.code is None:
            continue
        for event in events:
            found.setdefault((event, words.number(form.code)), []).append(form)
    return found


def _reader(form: AnswerForm, machine: MachineSpec) -> Iterator[str]:
    """The lines that gather the variables that an answer tells; none when it tells none."""
    header = list(_claims("header", form.header_fields, machine))
    body = list(_claims("body", form.body_fields, machine))
    if header:
        yield f"header = {own(form.header)}.from_ext_fields(ext_fields)"
    if body:
        yield f"body = {own(form.body)}.decode(data) if data else {own(form.body)}()"
    found: dict[str, list[_Claim]] = {}
    for each in reversed((*header, *body)):
        found.setdefault(each.variable, []).append(each)
    always, perhaps = [], []
    for name in dict.fromkeys(each.variable for each in (*header, *body)):
        *tried, value = (each.value for each in found[name])
        for other in reversed(tried):
            value = f"{BOUND.first_of}({other}, {value})"
        if any(each.may_be_none and each.source == "header" for each in found[name]):
            always.append(f'"{name}": {value}')
        elif any(each.may_be_none for each in found[name]):
            always.append(f'**({{"{name}": {value}}} if data else {{}})')
        else:
            perhaps.append(f"{name}={value}")
    told = f"{BOUND.told}({', '.join(perhaps)})" if perhaps else ""
    if always:
        yield f"return {{{', '.join([*always, f'**{told}'] if told else always)}}}"
    elif told:
        yield f"return {told}"


@dataclass(frozen=True, slots=True)
class _Claim:
    """One field of an answer that is a variable; `may_be_none`: absent, it says that the variable is none."""

    variable: str
    source: str
    value: str
    may_be_none: bool


def _claims(source: str, fields: Mapping[str, Value], machine: MachineSpec) -> Iterator[_Claim]:
    for field, node in fields.items():
        match node:
            case ex.Variable(name) | ex.Conditional(_, ex.Variable(name), ex.Literal(None)) if (
                name in machine.variables
            ):
                kind = machine.variables[name].type
                value = f"{source}.{field}"
                if kind.kind == "set":
                    value = f"{BOUND.as_set}({value})"
                yield _Claim(name, source, value, kind.optional and isinstance(node, ex.Variable))
