"""The Python module of a family's paths."""

from __future__ import annotations

from collections.abc import Mapping

from replispec.compiler.emit.python.codes import certificate
from replispec.compiler.emit.python.tree import PRIMITIVES, Constant, Module, Names, homes, own
from replispec.compiler.model.message import Model
from replispec.compiler.model.path import PathSpec

_PATHS = Names(f"{PRIMITIVES}.paths")


def paths_text(paths: Mapping[str, PathSpec], model: Model, sources: Mapping[str, bytes]) -> str:
    """The module with one template for each path, and all of them by layout."""
    nodes = [
        Constant(name, _template(each), str(_PATHS.PathTemplate), each.about, is_listed=True)
        for name, each in paths.items()
    ]
    layouts = dict.fromkeys(each.layout for each in paths.values())
    rows = [
        f'"{layout}": ({" ".join(f"{name}," for name, each in paths.items() if each.layout == layout)}),'
        for layout in layouts
    ]
    kind = f"dict[str, tuple[{_PATHS.PathTemplate}, ...]]"
    nodes.append(Constant("PATHS", f"{{{' '.join(rows)}}}", kind, "All paths of each layout."))
    about = f"Where {model.family} keeps what: the paths of its layouts."
    name = f"replispec.wire.{model.family}.paths"
    return Module(name, certificate(sources), about, [*nodes], homes(model)).text()


def _template(path: PathSpec) -> str:
    fields = " ".join(f'("{name}", {digits}),' for name, digits in path.fields)
    parts = [
        *(f'"{path.name}"', f'"{path.template}"', f"({fields})", f'"{path.life}"'),
        str(own(path.holds)) if path.holds else "None",
        *(f"made_by={path.made_by!r}", f"removed_by={path.removed_by!r}"),
        *(f"changed_by={dict(path.changed_by)!r}", f"watched_by={dict(path.watched_by)!r}"),
    ]
    return f"{_PATHS.PathTemplate}({', '.join(parts)})"
