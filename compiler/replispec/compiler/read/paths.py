"""paths/FAMILY/*.yaml: a layout each, of a store or a folder: where what is kept."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from replispec.compiler.check.python_names import check_word
from replispec.compiler.model.faults import attempt
from replispec.compiler.model.message import Model, Place, SpecificationError
from replispec.compiler.model.path import CHANGES, LIVES, WATCHES, PathSpec
from replispec.compiler.model.versions import parse_versions
from replispec.compiler.read.yaml_source import Tree

_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_FIELD: Final = re.compile(r"\{([^{}]*)\}")
_DECLARED: Final = re.compile(r"([a-z][a-z0-9_]*)(?::(number|[1-9][0-9]?))?")
_KEYS: Final = (
    "path",
    "about",
    "holds",
    "life",
    "made_by",
    "removed_by",
    "changed_by",
    "watched_by",
    "clause",
)


def read_paths(trees: Mapping[str, Tree], model: Model) -> dict[str, PathSpec]:
    """The paths of a family, by what generated code calls them. Raises SpecificationError."""
    found: dict[str, PathSpec] = {}
    for tree in trees.values():
        tree.only("layout", "about", "releases", "paths")
        for each in _paths(tree, model):
            if each.constant in found:
                raise SpecificationError(
                    each.place, f"the path {each.name} stands twice", f"see {found[each.constant].place}"
                )
            found[each.constant] = each
    return found


def _paths(file: Tree, model: Model) -> Iterator[PathSpec]:
    layout, place = _name(file.text("layout"), file.place_of("layout")), file.place_of("releases")
    versions = parse_versions(file.text("releases", ""), place)
    for name, tree in file.trees("paths"):
        with attempt():
            tree.only(*_KEYS)
            where = file.tree("paths").place_of(name)
            holds = tree.text("holds", "")
            if holds and holds not in model.messages:
                raise SpecificationError(
                    tree.place_of("holds"), f"no message is named {holds!r}", "name one of spec/proto"
                )
            template = tree.text("path")
            yield PathSpec(
                _name(name, where),
                layout,
                template,
                tree.text("about"),
                where,
                tuple(_fields(template, tree.place_of("path"))),
                holds,
                _one_of(tree.text("life"), LIVES, tree.place_of("life")),
                _parties(tree.texts("made_by"), model, tree.place_of("made_by")),
                _parties(tree.texts("removed_by"), model, tree.place_of("removed_by")),
                tuple(_done(tree, "changed_by", CHANGES, model)),
                tuple(_done(tree, "watched_by", WATCHES, model)),
                versions,
                tree.texts("clause"),
            )


def _name(name: str, place: Place) -> str:
    if not _NAME.fullmatch(name):
        raise SpecificationError(place, f"{name!r} is no name", "use small letters joined by _")
    return name


def _fields(template: str, place: Place) -> Iterator[tuple[str, int | None]]:
    seen: set[str] = set()
    for text in _FIELD.findall(template):
        declared = _DECLARED.fullmatch(text)
        if declared is None or declared[1] in seen:
            raise SpecificationError(
                place,
                f"{{{text}}} is no field of a path, or stands twice",
                "write {topic}, {partition:number}, or {offset:20} for a number of 20 digits",
            )
        check_word(declared[1], place)
        seen.add(declared[1])
        digits = declared[2]
        yield declared[1], None if digits is None else 0 if digits == "number" else int(digits)
    if {"{", "}"} & {*_FIELD.sub("", template)} or "}{" in template:
        raise SpecificationError(
            place, f"{template!r} has a bracket too many", "part fields by something else"
        )


def _one_of(text: str, known: Sequence[str], place: Place) -> str:
    if text not in known:
        raise SpecificationError(place, f"{text!r} is not known here", f"write {' or '.join(known)}")
    return text


def _parties(names: Sequence[str], model: Model, place: Place) -> tuple[str, ...]:
    for name in names:
        if name not in model.declared.parties:
            raise SpecificationError(
                place,
                f"the family declares no party {name!r}",
                f"declare it below parties; there are: {', '.join(model.declared.parties) or 'none'}",
            )
    return tuple(names)


def _done(tree: Tree, key: str, known: Sequence[str], model: Model) -> Iterator[tuple[str, str]]:
    """What each party does: its name with one of the known words."""
    said = tree.tree(key)
    for party in _parties(tuple(said.items), model, tree.place_of(key)):
        yield party, _one_of(said.text(party), known, said.place_of(party))
