"""The book of this checkout, made once, and its links."""

from __future__ import annotations

import functools
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from replispec.handbook.book import Book, Checkout, make_book
from replispec.handbook.knowledge import read_knowledge

ROOT = Path(__file__).parents[2]
KNOWN = {each.name: each for each in read_knowledge(ROOT / "spec", ROOT / "conformance" / "cases")}
_LINK = re.compile(r"\]\(site:([^)#]+)(?:#([^)]*))?\)")


@functools.cache
def whole_book() -> Book:
    """All pages of the site."""
    return make_book(Checkout(ROOT))


def links(book: Book, path: str) -> Iterator[tuple[str, str]]:
    """Where the links of a page lead: files below the site, and anchors."""
    for to, fragment in _LINK.findall(book.pages[path].text):
        yield posixpath.normpath(posixpath.join(posixpath.dirname(path), to)), fragment


@functools.cache
def neighbours() -> dict[str, frozenset[str]]:
    """The pages that each page links to."""
    book = whole_book()
    return {path: frozenset(to.removesuffix(".html") for to, _ in links(book, path)) for path in book.pages}
