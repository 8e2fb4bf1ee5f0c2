"""What all bindings are made of: codes, fields of messages, texts with expressions in them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from replispec.compiler.check.python_names import check_word
from replispec.compiler.language.check import Scope, present_after, require, type_of
from replispec.compiler.model import expressions as ex
from replispec.compiler.model.binding import LocalField, Remark, Text
from replispec.compiler.model.machine import MachineSpec
from replispec.compiler.model.message import Message, Model, Place, SpecificationError
from replispec.compiler.model.rule import RuleType
from replispec.compiler.model.value_types import BOOL, STRING, Type
from replispec.compiler.read.yaml_source import Scalar, Sequence, Tree

INSTANCE: Final = "instance"
"""The name under which an expression reads which instance of the machine is meant."""
HEADER_ITSELF: Final = "header"
"""The name under which an expression reads the whole header."""
WHOLE_BODY: Final = "body"
"""The name under which an expression reads the whole body, where it is a message."""
BODY_ITSELF: Final = "data"
"""The name under which an expression reads the bytes of a request's body."""
CODE: Final = "code"
"""The name under which an expression reads the code of a request that has several."""
NOTHING: Final[frozenset[ex.Expression]] = frozenset()
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_BRACES: Final = re.compile(r"\{([^{}]*)\}")
_SHOWN: Final = ("int32", "int64", "string", "enum", "bool")


@dataclass(frozen=True, slots=True)
class RoleTypes:
    """What only the role knows, by name: as it is, and when it is asked of something."""

    fields: Mapping[str, Type]
    questions: Mapping[str, RuleType]


def role_types(local: Mapping[str, LocalField]) -> RoleTypes:
    """The types of what only the role knows."""
    return RoleTypes(
        {name: each.type for name, each in local.items() if not each.of},
        {name: RuleType(each.of, each.type) for name, each in local.items() if each.of},
    )


def effect_scope(
    effect: str, machine: MachineSpec, model: Model, known: RoleTypes, rules: Mapping[str, RuleType]
) -> Scope:
    """What an effect may say: variables, the instance, and the fields that every event has on which it is
    done."""
    events = [machine.events[name] for name in machine.effects()[effect]]
    first, *others = (each.fields for each in events)
    common = {name: kind for name, kind in first.items() if all(other.get(name) == kind for other in others)}
    return replace(
        machine_scope(machine, model, known, rules),
        event=common,
        event_name=" and ".join(each.name for each in events),
    )


def machine_scope(
    machine: MachineSpec, model: Model, known: RoleTypes, rules: Mapping[str, RuleType]
) -> Scope:
    """What a machine may say at any time: its variables, its instance, and what only the role knows."""
    variables = {name: each.type for name, each in machine.variables.items()}
    return Scope(
        model,
        variables={**variables, INSTANCE: STRING},
        rules=rules,
        sources={"local": known.fields},
        questions=known.questions,
    )


def read_name(text: str, place: Place) -> str:
    """A name of a machine or of its parts. Raises SpecificationError for what is none."""
    if not _NAME.fullmatch(text):
        raise SpecificationError(place, f"{text!r} is no name", "use lower case words joined by _")
    check_word(text, place)
    return text


def read_variable_name(text: str, place: Place) -> str:
    """A name that an expression may read bare."""
    if text in ex.CONSTANTS or text == INSTANCE:
        raise SpecificationError(
            place, f"{text!r} means something else in an expression", "take another name"
        )
    return read_name(text, place)


def message_named(name: str, model: Model, place: Place) -> Message:
    """The message with this name. Raises SpecificationError when there is none."""
    message = model.messages.get(name)
    if message is None:
        raise SpecificationError(place, f"no message is named {name!r}", "name one of spec/proto")
    return message


def enum_member(text: str, model: Model, place: Place) -> ex.EnumMember:
    """The value of an enum that `text` names as ENUM.NAME. Raises SpecificationError when there is none."""
    node = ex.parse(text, place)
    if not isinstance(node, ex.EnumMember):
        raise SpecificationError(place, f"{text!r} is no value of an enum", "write ENUM.NAME")
    type_of(node, Scope(model), place)
    return node


def read_condition(
    tree: Tree, scope: Scope, present: frozenset[ex.Expression] = NOTHING
) -> ex.Expression | None:
    """The condition under `if`; None when there is none."""
    if "if" not in tree.items:
        return None
    condition = ex.parse(tree.text("if"), tree.place_of("if"))
    require(condition, BOOL, scope, tree.place_of("if"), "the condition", present)
    return condition


def read_remark(tree: Tree, scope: Scope, present: frozenset[ex.Expression] = NOTHING) -> Remark | None:
    """The text under `remark`, or the list of texts with their conditions, of which the last has none."""
    node = tree.items.get("remark")
    if node is None:
        return None
    place = tree.place_of("remark")
    if isinstance(node, Scalar):
        return Remark(((None, read_text(tree.text("remark"), scope, place, present)),))
    choices: list[tuple[ex.Expression | None, Text]] = []
    for each in tree.listed("remark") if isinstance(node, Sequence) else ():
        each.only("if", "text")
        condition = read_condition(each, scope, present)
        fits = NOTHING if condition is None else present_after(condition, when=True)
        text = read_text(each.text("text"), scope, each.place_of("text"), present | fits)
        choices.append((condition, text))
        if condition is not None:
            present |= present_after(condition, when=False)
    if not choices or choices[-1][0] is not None or any(each is None for each, _ in choices[:-1]):
        raise SpecificationError(
            place, "it is open which text is taken", "give all texts but the last one an if"
        )
    return Remark(tuple(choices))


def read_text(text: str, scope: Scope, place: Place, present: frozenset[ex.Expression] = NOTHING) -> Text:
    """A text with `{expression}` in it: numbers, texts, and lists or sets of them."""
    parts: list[str | ex.Expression] = []
    lists: set[ex.Expression] = set()
    for number, part in enumerate(_BRACES.split(text)):
        if number % 2 == 0:
            if "{" in part or "}" in part:
                raise SpecificationError(place, f"{text!r} has a brace outside {{..}}", "write {expression}")
            parts += [part] if part else []
            continue
        node = ex.parse(part, place)
        kind = type_of(node, scope, place, present)
        shown = kind.item if kind.kind in ("list", "set") and kind.item is not None else kind
        if shown.kind not in _SHOWN:
            raise SpecificationError(place, f"{{{part}}} is {kind}", "show numbers and texts only")
        parts.append(node)
        if shown is not kind:
            lists.add(node)
    return Text(tuple(parts), frozenset(lists))


def code_text(tree: Tree, name: str) -> str:
    """The code of an effect that answers: written alone, or under `code`."""
    return tree.tree(name).text("code") if isinstance(tree.items[name], Tree) else tree.text(name)
