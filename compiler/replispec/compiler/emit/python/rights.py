"""The Python module of what each request of a family needs, and its page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from replispec.compiler.check.rights import field_of, is_in_body
from replispec.compiler.emit.python.codes import certificate
from replispec.compiler.emit.python.tree import PRIMITIVES, TYPING, Constant, Module, Names, Node
from replispec.compiler.model.message import Message, Model, NeededRight

_RIGHTS = Names(f"{PRIMITIVES}.rights")
_NOTE = "<!-- made by `make generate`; change the specification, not this page -->"


def rights_text(model: Model, sources: Mapping[str, bytes]) -> str:
    """The rights of a family by name, and which a request needs, by its code; empty when there are none."""
    rights = model.declared.rights
    if not rights:
        return ""
    rows = " ".join(
        f"{code}: ({' '.join(f'{_need(model, message, need)},' for need in message.needs)}),"
        for message, code in _requests(model)
    )
    audited = " ".join(
        f"{code}: {_audited(message)!r}," for message, code in _requests(model) if message.audited
    )
    nodes: list[Node] = [Constant(name, repr(name), f"{TYPING.Final}") for name in rights]
    nodes.append(Constant("NEEDS", f"{{{rows}}}", f"dict[int, tuple[{_RIGHTS.Need}, ...]]"))
    nodes.append(Constant("AUDITED", f"{{{audited}}}", "dict[int, str]"))
    about = f"Rights of {model.family}: what each request needs of whoever sends it."
    return Module(f"replispec.wire.{model.family}.rights", certificate(sources), about, nodes).text()


def _audited(message: Message) -> str:
    """The key of the flag without which a request is none of an administrator; empty: it always is."""
    flag = next((need.when for need in message.needs if need.when), "")
    field = message.field_named(flag) if flag else None
    return field.key if field is not None else ""


def _need(model: Model, message: Message, need: NeededRight) -> str:
    keys = tuple(field.key for field in field_of(model, message, need.of)) if need.of else ()
    flag = message.field_named(need.when) if need.when else None
    said = [repr(need.right), repr(keys), repr(is_in_body(message, need)), repr(flag.key if flag else "")]
    return f"{_RIGHTS.Need}({', '.join(said)})"


def _requests(model: Model) -> Iterator[tuple[Message, int]]:
    """Each request code once: messages that share one differ by release, and need the same."""
    seen: set[int] = set()
    for message in model.messages.values():
        for code in message.codes if message.is_request else ():
            if code not in seen:
                seen.add(code)
                yield message, code


def rights_markdown(model: Model) -> str:
    """Who may ask for what; empty when the family has no rights."""
    rights = model.declared.rights
    if not rights:
        return ""
    lines = [_NOTE, "", f"# {model.family}: rights", "", "| right | who has it |", "| --- | --- |"]
    lines += [f"| {name} | {about} |" for name, about in rights.items()]
    lines += ["", "| code | request | needs | told in the log |", "| --- | --- | --- | --- |"]
    for message, code in sorted(_requests(model), key=lambda each: each[1]):
        needs = ", ".join(map(_said, message.needs))
        lines.append(f"| {code} | {message.name} | {needs} | {'yes' if message.audited else ''} |")
    return "\n".join(lines) + "\n"


def _said(need: NeededRight) -> str:
    of = f" of `{need.of}`" if need.of else ""
    return f"{need.right}{of}" + (f" where `{need.when}` is set" if need.when else "")
