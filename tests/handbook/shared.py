"""The book of this checkout, made once, and its links."""

from __future__ import annotations

import functools
import posixpath
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from replispec.handbook.book import Book, Checkout, make_book
from replispec.handbook.knowledge import Knowledge, read_knowledge
from replispec.handbook.places import Places
from replispec.runtime import families

ROOT = Path(__file__).parents[2]
NAMES = families.names()
_LINK = re.compile(r"\]\(site:([^)#]+)(?:#([^)]*))?\)")


@functools.cache
def all_known() -> Mapping[str, Knowledge]:
    """What is known of each family, by name: read when a test first asks, not where tests are collected."""
    return {each.name: each for each in read_knowledge(ROOT / "spec", ROOT / "conformance" / "cases")}


@functools.cache
def places() -> Places:
    """Where the pages of all that is known stand."""
    return Places(all_known())


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
