"""What an answer claims: the inverse of the answers, for whoever watches.

A field that is a variable tells it; one that is a variable under a condition, or else absent, tells it when
it is there. All else of an answer tells nothing of the variables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from replispec.compiler.emit.python.binding_words import BindingWords, indented, parameters
from replispec.compiler.emit.python.machines import class_name, docstring
from replispec.compiler.language import expressions as ex
from replispec.compiler.model.binding import AnswerForm
from replispec.compiler.model.machine import Machine
from replispec.compiler.model.message import VersionRange


def claim_lines(machine: Machine, words: BindingWords) -> Iterator[str]:
    """The lines that read the claims of answers and notices."""
    answers = machine.bindings.answers
    said = {**answers, **machine.bindings.notices}
    telling = {name: lines for name, form in said.items() if (lines := list(_reader(form, machine)))}
    for name, lines in telling.items():
        given = ("ext_fields: ExtFields", "data: bytes")
        yield f"def _claims_of_{name}({parameters(given, lines)}) -> dict[str, Any]:"
        yield from indented(lines)
        yield ""
    yield "def _nothing(_ext_fields: ExtFields, _data: bytes) -> dict[str, Any]:"
    yield "    return {}"
    yield ""
    yield "def claims_of(asked: type[Any], code: int, ext_fields: ExtFields, data: bytes) -> Claims | None:"
    about = (
        "What the answer to a request says, by the event that the request is; None when no edge answers so."
    )
    more = (
        "Code 0 grants, and so does a refusal that counts as another answer. Raises\n"
        "RemoteProtocolError when the answer cannot be read."
    )
    yield from indented(docstring(about, more))
    yield "    found = _CLAIMS.get((asked, code))"
    yield "    if found is None:"
    yield "        return None"
    yield "    effects, accepted, read = found"
    yield "    return Claims(effects, accepted, read(ext_fields, data))"
    yield ""
    kind = "tuple[frozenset[str], bool, Callable[[ExtFields, bytes], dict[str, Any]]]"
    yield f"_CLAIMS: Final[Mapping[tuple[type[Any], int], {kind}]] = MappingProxyType({{"
    for (event, number), forms in _by_code(machine, words).items():
        effects = ", ".join(repr(form.effect) for form in forms)
        accepted = number == 0 or any(form.counts_as for form in forms)
        readers = {f"_claims_of_{form.effect}" if form.effect in telling else "_nothing" for form in forms}
        reader = readers.pop() if len(readers) == 1 else "_nothing"
        yield f"    ({class_name(event)}, {number}): (frozenset(({effects},)), {accepted}, {reader}),"
    yield "})"
    yield ""
    if any(name in telling for name in machine.bindings.notices):
        yield "CLAIMS_OF_NOTICES: Final = MappingProxyType({"
        for name in machine.bindings.notices:
            if name in telling:
                yield f'    "{name}": _claims_of_{name},'
        yield "})"
        yield '"""What each notice says of the variables."""'
        yield ""
    counted = {name: form for name, form in answers.items() if form.counts_as}
    if counted:
        yield "COUNTS_AS: Final[Mapping[str, tuple[str, Releases | None]]] = MappingProxyType({"
        for name, form in counted.items():
            yield f'    "{name}": ("{form.counts_as}", {_releases(form.releases)}),'
        yield "})"
        yield '"""Refusals that count as another answer, and the releases in which they do."""'
        yield ""


def _by_code(machine: Machine, words: BindingWords) -> dict[tuple[str, int], list[AnswerForm]]:
    """The answers that an event may get, by the number of their code."""
    found: dict[tuple[str, int], list[AnswerForm]] = {}
    for effect, events in machine.effects().items():
        form = machine.bindings.answers.get(effect)
        if form is None or form.code is None:
            continue
        for event in events:
            found.setdefault((event, words.number(form.code)), []).append(form)
    return found


def _reader(form: AnswerForm, machine: Machine) -> Iterator[str]:
    """The lines that gather the variables that an answer tells; none when it tells none."""
    header = list(_taken("header", _plain(form.header_fields), machine))
    body = list(_taken("body", _plain(form.body_fields), machine))
    if not header and not body:
        return
    yield "claims: dict[str, Any] = {}"
    if header:
        yield f"header = {form.header}.from_ext_fields(ext_fields)"
        yield from header
    if body:
        yield "if data:"
        yield f"    body = {form.body}.decode(data)"
        yield from indented(body)
    yield "return claims"


def _plain(fields: Mapping[str, object]) -> dict[str, ex.Expression]:
    return {name: node for name, node in fields.items() if isinstance(node, ex.Expression)}


def _taken(source: str, fields: Mapping[str, ex.Expression], machine: Machine) -> Iterator[str]:
    for field, node in fields.items():
        match node:
            case ex.Variable(name) | ex.Conditional(_, ex.Variable(name), ex.Literal(None)) if (
                name in machine.variables
            ):
                kind = machine.variables[name].type
                value = f"{source}.{field}"
                if kind.optional and isinstance(node, ex.Variable):
                    yield f'claims["{name}"] = {value}'
                    continue
                yield f"if {value} is not None:"
                yield f'    claims["{name}"] = {f"frozenset({value})" if kind.kind == "set" else value}'


def _releases(versions: VersionRange | None) -> str:
    if versions is None:
        return "None"
    return f'Releases("{versions.implementation}", {versions.first!r}, {versions.last!r})'
