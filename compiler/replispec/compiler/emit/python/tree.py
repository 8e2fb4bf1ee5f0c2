"""A small tree for emitted Python: modules, classes, functions, constants, and names of other modules.

A `Ref` may stand anywhere in the text of a node; the module imports exactly what its nodes refer to. So no
emitter keeps a list of imports, and none is searched for in finished text. Layout is left to the formatter.
"""

from __future__ import annotations

import re
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from replispec.compiler.model.message import Model, Place, SpecificationError

# Columns of a line of generated code, and of a docstring's or comment's text.
LINE_LENGTH = 110
WIDTH = 96
_OPEN, _CLOSE = "\x01", "\x02"
_REF = re.compile(f"{_OPEN}([^:{_CLOSE}]*):([^{_CLOSE}]+){_CLOSE}")


@dataclass(frozen=True, slots=True)
class Ref:
    """A name that another module defines; in an f-string it becomes a mark that the module resolves.

    An empty module is that which the specification's own names come from, see `Module.home`.
    """

    module: str
    name: str

    def __str__(self) -> str:
        return f"{_OPEN}{self.module}:{self.name}{_CLOSE}"


@dataclass(frozen=True, slots=True)
class Names:
    """The names of one module, as attributes: `Names("enum").IntEnum`."""

    module: str

    def __getattr__(self, name: str) -> Ref:
        return Ref(self.module, name)


PRIMITIVES = "replispec.runtime.primitives"
TYPING = Names("typing")
ABC = Names("collections.abc")
DATACLASSES = Names("dataclasses")


def own(name: str) -> Ref:
    """A name that a message, an enum or a group of numbers of the specification has."""
    return Ref("", name)


@dataclass(slots=True)
class Constant:
    """`name: annotation = value`, with a docstring below or a comment beside it; `is_listed`: one of many,
    which stand below each other."""

    name: str
    value: str = ""
    annotation: str = ""
    about: str = ""
    comment: str = ""
    is_listed: bool = False

    def lines(self) -> Iterator[str]:
        """The lines, not yet formatted."""
        kind = f": {self.annotation}" if self.annotation else ""
        text = f"{self.name}{kind}" + (f" = {self.value}" if self.value else "")
        if self.comment and len(f"    {plain(text)}  # {self.comment}") > LINE_LENGTH:
            yield from (f"# {line}" for line in textwrap.wrap(self.comment, WIDTH))
            yield text
        else:
            yield f"{text}  # {self.comment}" if self.comment else text
        if self.about:
            yield from docstring(self.about)


@dataclass(slots=True)
class FunctionDef:
    """A function or method; `body` are its lines without indentation.

    One that only says `...` has its `comment` beside it, or above it where there is no room.
    """

    name: str
    parameters: str
    returns: str
    body: Sequence[str]
    about: str = ""
    decorators: Sequence[str] = ()
    comment: str = ""

    def lines(self) -> Iterator[str]:
        """The lines, not yet formatted."""
        said = f"def {self.name}({self.parameters}) -> {self.returns}:"
        beside = f"{said} ...  # {self.comment}"
        has_room = len(f"    {plain(beside)}") <= LINE_LENGTH
        yield from (f"# {line}" for line in textwrap.wrap("" if has_room else self.comment, WIDTH))
        yield from (f"@{each}" for each in self.decorators)
        if self.comment and has_room:
            yield beside
            return
        yield said
        if self.about:
            yield from indented(docstring(self.about))
        yield from indented(self.body)


@dataclass(slots=True)
class Class:
    """A class; its body are constants (attributes), then functions."""

    name: str
    about: str
    bases: Sequence[str] = ()
    decorators: Sequence[str] = ()
    body: Sequence[Constant | FunctionDef] = ()

    def lines(self) -> Iterator[str]:
        """The lines, not yet formatted."""
        yield from (f"@{each}" for each in self.decorators)
        bases = f"({', '.join(self.bases)})" if self.bases else ""
        yield f"class {self.name}{bases}:"
        if self.about:
            yield from indented(docstring(self.about))
            yield ""
        for node in self.body:
            if isinstance(node, FunctionDef) and (node.about or node.body != ["..."]):
                yield ""
            yield from indented(node.lines())
        if not self.body and not self.about:
            yield "    pass"


@dataclass(slots=True)
class Comment:
    """A comment on a line of its own, above what follows."""

    text: str

    def lines(self) -> Iterator[str]:
        """The lines, not yet formatted."""
        yield from ("", *(f"# {line}" for line in textwrap.wrap(self.text, WIDTH)), "")


Node = Constant | FunctionDef | Class | Comment


@dataclass(slots=True)
class Module:
    """A module: the lines of its header, what it is about, its nodes.

    `name` is its full name, `home` maps each name of the specification to the module that defines it, `place`
    is where the specification of the module starts; `exports` are names of other modules
    that are had from this one, too.
    """

    name: str
    header: Sequence[str]
    about: str
    nodes: list[Node] = field(default_factory=list)
    home: Mapping[str, str] = field(default_factory=dict)
    place: Place | None = None
    exports: Sequence[Ref] = ()

    def text(self) -> str:
        """The text, not yet formatted; its imports are what its nodes refer to."""
        body = [line for node in self.nodes for line in _apart(node)]
        used: dict[str, set[str]] = defaultdict(set)
        meant: dict[str, str] = {}

        def resolve(match: re.Match[str]) -> str:
            module = match[1] or self.home[match[2]]
            other = meant.setdefault(match[2], module)
            if module != other:
                fault = f"{match[2]} is a name of {module} and of {other}"
                raise SpecificationError(
                    self.place or self.name, fault, "give what the specification names so another name"
                )
            if module != self.name:
                used[module].add(match[2])
            return match[2]

        lines = [_REF.sub(resolve, line) for line in body]
        imports = [f"from {module} import {', '.join(sorted(used[module]))}" for module in sorted(used)]
        imports += [f"from {each.module} import {each.name} as {each.name}" for each in self.exports]
        head = [*self.header, *docstring(self.about), "", "from __future__ import annotations", ""]
        return "\n".join([*head, *imports, "", *lines]).rstrip() + "\n"


def homes(model: Model) -> dict[str, str]:
    """The module that defines each name of the specification, as `Module.home` wants it."""
    package = f"replispec.wire.{model.family}"
    found = dict.fromkeys(model.enums, f"{package}.codes")
    return found | {each.name: f"{package}.{each.module}" for each in model.messages.values()}


def _apart(node: Node) -> Iterator[str]:
    """The node's lines, and blank ones where the formatter would not set them."""
    yield from node.lines()
    if not isinstance(node, Constant) or (node.about and not node.is_listed):
        yield ""


def docstring(text: str) -> Iterator[str]:
    """Lines of a docstring: paragraphs are wrapped, lines that are short enough stay as they are."""
    clean = text.replace("\\", "\\\\").replace('"""', "'''")
    lines = [line for paragraph in clean.split("\n") for line in (textwrap.wrap(paragraph, WIDTH) or [""])]
    if len(lines) == 1:
        yield f'"""{lines[0]}"""' if not lines[0].endswith('"') else f'"""{lines[0]} """'
        return
    yield f'"""{lines[0]}'
    yield from lines[1:]
    yield '"""'


def indented(lines: Iterable[str]) -> Iterator[str]:
    """The lines, four blanks further right."""
    return ("    " + line if line else "" for line in lines)


def plain(text: str) -> str:
    """The text as it will be read, without marks of references."""
    return _REF.sub(r"\2", text)
