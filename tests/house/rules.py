"""The rules of the house as functions from a source text to complaints, each with its line."""

import ast
import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache

import yaml

FILE_LINES_MAXIMUM = 500
FUNCTION_LINES_MAXIMUM = 70
LINE_LENGTH_MAXIMUM = 110
# Smaller codes (0, 1, 10, 11) and round ones (200) are everyday numbers: a literal proves nothing.
REQUEST_CODE_MINIMUM = 100
ROUND_NUMBER = 100
# What a part of a role may keep as its own: bounds, and words of ours.
OWN_BOUND = re.compile(r"_(?:MAX|MIN|AT_ONCE|PARTS)$")
PLAIN_WORD = re.compile(r"[a-z][a-z_]+(?:\.[a-z]+)*")
LIMITS_OF_FIELDS = {2**15 - 1, 2**16 - 1, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1}
OPERATORS: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Pow: operator.pow,
    ast.LShift: lambda one, two: int(one) << int(two),
}


def imports(source: str) -> Iterator[tuple[int, str]]:
    """Every module that the source imports, at any depth, as (line, dotted name).

    `from a import b` gives a.b: be it a module or a name in a, the same prefix decides about the layer.
    """
    yield from _imported(source)


@cache
def _imported(source: str) -> tuple[tuple[int, str], ...]:
    return tuple(_imports_in(ast.parse(source)))


def _imports_in(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = "." * node.level + (node.module or "")
            yield from ((node.lineno, f"{start}.{alias.name}") for alias in node.names)


def within(name: str, prefixes: Collection[str]) -> bool:
    """Whether a dotted name is one of the prefixes or lies below one."""
    return any(name == prefix or name.startswith(prefix + ".") for prefix in prefixes)


def forbidden_imports(source: str, own: Collection[str], banned: Collection[str]) -> Iterator[str]:
    """Imports of `replispec` outside `own`, and imports of anything `banned`."""
    for line, name in imports(source):
        if name.startswith("."):
            yield f"line {line}: relative import {name}"
        elif name.split(".")[0] == "replispec" and not within(name, own):
            yield f"line {line}: imports {name}, a room it may not know"
        elif within(name, banned):
            yield f"line {line}: imports {name}, which does not belong here"


def called_builtins(source: str, banned: Collection[str]) -> Iterator[str]:
    """Calls of builtin functions that reach the world, such as open."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in banned:
            yield f"line {node.lineno}: calls {node.func.id}()"


def unbounded_digits(source: str) -> Iterator[str]:
    """Questions whether a text is of digits, which lead to a number of as many as a peer likes."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in ("isdigit", "isdecimal", "isnumeric"):
            yield f"line {node.lineno}: asks {node.attr}: use decimal_of"


def wire_keys(source: str, keys: Collection[str]) -> Iterator[str]:
    """String literals that are a key of the wire; keys without a capital are everyday words."""
    spelt = {key for key in keys if key != key.lower()}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in spelt:
            yield f"line {node.lineno}: spells the wire key {node.value!r}: use the generated constant"


def request_codes(source: str, codes: Collection[int]) -> Iterator[str]:
    """Integer literals that are a request code."""
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Constant)
            and type(node.value) is int
            and node.value >= REQUEST_CODE_MINIMUM
            and node.value % ROUND_NUMBER
            and node.value in codes
        ):
            yield f"line {node.lineno}: writes the request code {node.value}: use RequestCode"


def values_by_hand(source: str) -> Iterator[str]:
    """Numbers and texts that a part of a role keeps as its own, but that are a protocol's or a parameter.

    A module may name bounds of ours (MAX, MIN, AT_ONCE, PARTS) and plain lower-case words (of listeners, of
    files). A bound that is the limit of a number of 2, 4 or 8 bytes is that of a field, a time is a parameter
    or a constant of the specification, and so is a pattern.
    """
    tree = ast.parse(source)
    for node in tree.body:
        if (
            isinstance(node, ast.Assign | ast.AnnAssign)
            and node.value is not None
            and _is_literal(node.value)
        ):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            name, value = ast.unparse(target), ast.unparse(node.value)
            if not name.startswith("__") and not _is_own(name, node.value):
                yield f"line {node.lineno}: keeps {name} = {value}: name it in the specification"
    for inner in ast.walk(tree):
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _times_by_hand(inner.args)


def _times_by_hand(arguments: ast.arguments) -> Iterator[str]:
    """Parameters of a function that are times and have a number as default."""
    positional = [*arguments.posonlyargs, *arguments.args]
    given = zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True)
    for argument, default in (*given, *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)):
        if argument.arg.endswith("_ms") and isinstance(default, ast.Constant) and default.value:
            kept = f"{argument.arg} = {default.value!r}"
            yield f"line {argument.lineno}: keeps {kept}: name it in the specification"


def _is_literal(node: ast.expr) -> bool:
    """Whether a value is made of numbers and texts alone, be it by arithmetic or as a pattern."""
    match node:
        case ast.Constant(value=value):
            return isinstance(value, int | float | str | bytes) and not isinstance(value, bool)
        case ast.BinOp(left=left, right=right):
            return _is_literal(left) and _is_literal(right)
        case ast.UnaryOp(operand=operand):
            return _is_literal(operand)
        case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
            return any(map(_is_literal, elements))
        case ast.Call(func=ast.Attribute(attr="compile"), args=arguments):
            return any(map(_is_literal, arguments))
        case _:
            return False


def _is_own(name: str, node: ast.expr) -> bool:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return bool(PLAIN_WORD.fullmatch(node.value))
    is_number = isinstance(node, ast.Constant | ast.BinOp)
    return is_number and bool(OWN_BOUND.search(name)) and _number(node) not in LIMITS_OF_FIELDS


def _number(node: ast.expr) -> float:
    """The value of arithmetic on numbers."""
    match node:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.BinOp(left=left, op=sign, right=right):
            return OPERATORS[type(sign)](_number(left), _number(right))
    return 0


def sizes(source: str) -> Iterator[str]:
    """Files and functions that are longer than one can hold in mind."""
    count = len(source.splitlines())
    if count > FILE_LINES_MAXIMUM:
        yield f"{count} lines, at most {FILE_LINES_MAXIMUM}"
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES_MAXIMUM:
                yield f"line {node.lineno}: {node.name} has {length} lines, at most {FUNCTION_LINES_MAXIMUM}"


def long_lines(source: str) -> Iterator[str]:
    """Lines wider than the editor's."""
    for number, line in enumerate(source.splitlines(), start=1):
        if len(line) > LINE_LENGTH_MAXIMUM:
            yield f"line {number}: {len(line)} characters, at most {LINE_LENGTH_MAXIMUM}"


def local_links(source: str) -> Iterator[tuple[int, str]]:
    """Links of a Markdown text to files, as (line, path); links to sites and within the page are left out."""
    for number, line in enumerate(source.splitlines(), start=1):
        for target in re.findall(r"\]\(([^()\s]+)\)", line):
            path = target.partition("#")[0]
            if path and "://" not in target:
                yield number, path


def boolean_keys(source: str) -> Iterator[str]:
    """Keys that YAML 1.1 reads as a boolean: on, off, yes, no and their like, unquoted."""
    for document in yaml.compose_all(source, Loader=yaml.CSafeLoader):
        yield from _boolean_keys(document)


def _boolean_keys(node: yaml.Node | None) -> Iterator[str]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.tag == "tag:yaml.org,2002:bool":
                yield f"line {key.start_mark.line + 1}: the key {key.value!r} is read as a boolean"
            yield from _boolean_keys(key)
            yield from _boolean_keys(value)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _boolean_keys(item)
