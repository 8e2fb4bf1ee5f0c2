"""What neutral code may not say: the names of families, and imports of their folders."""

import ast
import io
import re
import tokenize
from collections.abc import Collection, Iterator
from pathlib import Path

from tests.house.rules import imports

FAMILIES = ("kafka", "raft", "rocketmq", "zookeeper")
# Families, those that are to come, and whose they are.
WORDS = re.compile("apache|dledger|kafka|qpid|\braft|rocketmq|zookeeper", re.IGNORECASE)
# A paragraph or comment that cites where something is written may say whose it is.
CITATION = re.compile(r"#?\s*Source:")


def of_a_family(path: Path, families: Collection[str] = FAMILIES) -> bool:
    """Whether a file lies in a folder named after a family."""
    return any(part in families for part in path.parts[:-1])


def knows_a_family(source: str, families: Collection[str] = FAMILIES) -> Iterator[str]:
    """Imports of a family's folder, and a family's name in code, texts, docstrings and comments.

    What cites a source is free: paragraphs of docstrings and comments that begin with `Source:`.
    """
    for line, name in imports(source):
        if name.startswith("replispec.") and set(name.split(".")) & set(families):
            yield f"line {line}: imports {name}"
    importing = _lines_of_imports(source)
    docstrings = _docstrings(source)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.start[0] in importing:
            continue
        text = token.string
        if token.start in docstrings:
            text = "\n\n".join(part for part in text.split("\n\n") if not CITATION.match(part.strip()))
        elif token.type == tokenize.COMMENT and CITATION.match(text):
            continue
        for word in dict.fromkeys(WORDS.findall(text)):
            yield f"line {token.start[0]}: says {word}"


def _lines_of_imports(source: str) -> set[int]:
    found = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import | ast.ImportFrom)]
    return {line for node in found for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}


def _docstrings(source: str) -> set[tuple[int, int]]:
    """Where texts stand that are statements of their own: docstrings, and words about a constant."""
    return {
        (node.lineno, node.col_offset)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
