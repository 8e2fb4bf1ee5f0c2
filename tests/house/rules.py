"""The rules of the house as functions from a source text to complaints, each with its line."""

import ast
import re
from collections.abc import Collection, Iterator

import yaml

FILE_LINES_MAXIMUM = 500
FUNCTION_LINES_MAXIMUM = 70
LINE_LENGTH_MAXIMUM = 110
# Smaller codes (0, 1, 10, 11) and round ones (200) are everyday numbers: a literal proves nothing.
REQUEST_CODE_MINIMUM = 100
ROUND_NUMBER = 100


def imports(source: str) -> Iterator[tuple[int, str]]:
    """Every module that the source imports, at any depth, as (line, dotted name).

    `from a import b` gives a.b: be it a module or a name in a, the same prefix decides about the layer.
    """
    for node in ast.walk(ast.parse(source)):
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
