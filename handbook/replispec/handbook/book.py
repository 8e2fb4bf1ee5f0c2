"""All pages of the site: made of the specification or found as documents, and what leads to each."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from replispec.handbook.catalogue import gathered
from replispec.handbook.documents import COMPILED, FILE, Page, Reader, title_of, without_comments
from replispec.handbook.knowledge import Knowledge, read_knowledge
from replispec.handbook.lessons import played
from replispec.handbook.places import CUT, REF, Places, link, relative
from replispec.handbook.subjects import Subjects, results_of

# Where documents of a checkout lie; what else they link to becomes a file of the site.
DOCUMENTS: Final = ("*.md", "docs/**/*.md", "lab/*.md", "spec/**/*.md")
RESULTS: Final = "docs/compliance.md"
TEACHING: Final = "docs/teaching"
_LINK: Final = re.compile(rf"\]\(({REF}|{FILE})([^)#]*)(?:#([^)]*))?\)")
_KINDS: Final = {
    "lesson": "Teaching pages",
    "clause": "Clauses",
    "machine": "Machines",
    "message": "Messages",
    "rule": "Rules",
    "invariant": "Invariants",
    "cases": "Cases",
    "document": "Documents of a family",
    "page": "Pages",
}


@dataclass(frozen=True, slots=True)
class Checkout:
    """Where the site is made from, below `root`: the specification, what was compiled of it, the cases."""

    root: Path

    @property
    def spec(self) -> Path:
        """The specification."""
        return self.root / "spec"

    @property
    def compiled(self) -> Path:
        """The Markdown that was compiled of it."""
        return self.root / COMPILED

    @property
    def cases(self) -> Path:
        """The cases of the suite."""
        return self.root / "conformance" / "cases"


@dataclass(frozen=True, slots=True)
class Book:
    """The pages, with links as the HTML has them; `files` are shown as they are, by their path below the
    checkout, and `ready` are HTML pages of others, by their path below the site."""

    pages: Mapping[str, Page]
    files: Sequence[str]
    ready: Mapping[str, Path]


def make_book(checkout: Checkout) -> Book:
    """All pages.

    Raises SpecificationError, CaseError and LessonError for what is not well formed.
    """
    known = {each.name: each for each in read_knowledge(checkout.spec, checkout.cases)}
    documents = _documents(checkout)
    reader = Reader(checkout.root, Places(known), documents)
    pages = list(_existing(checkout, reader))
    ready: dict[str, Path] = {}
    for each in known.values():
        pages += _of_family(checkout, reader, each, ready)
    for path in sorted(checkout.compiled.glob("*.md")):
        pages.append(_compiled(reader, path, checkout.compiled, ""))
    pages.append(_start(known, pages))
    return _bound(pages, ready)


def _documents(checkout: Checkout) -> dict[str, str]:
    """Every Markdown file of the checkout that becomes a page, with the page."""
    paths = sorted({path for pattern in DOCUMENTS for path in checkout.root.glob(pattern)})
    names = (path.relative_to(checkout.root).as_posix() for path in paths)
    return {name: name.removesuffix(".md").lower().replace("/readme", "/index") for name in names}


def _existing(checkout: Checkout, reader: Reader) -> Iterator[Page]:
    for name, path in reader.documents.items():
        text = played((checkout.root / name).read_text("utf-8"), name, reader.places)
        text = reader.referring(without_comments(text), name, path)
        kind = "lesson" if name.startswith(TEACHING) else "page"
        yield Page(path, title_of(text, path), kind, text)


def _of_family(
    checkout: Checkout, reader: Reader, known: Knowledge, ready: dict[str, Path]
) -> Iterator[Page]:
    folder = checkout.compiled / known.name
    texts = {
        path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in sorted(folder.rglob("*.md"))
    }
    results = checkout.root / RESULTS
    found = results_of(results.read_text("utf-8")) if results.is_file() else {}
    yield from Subjects(known, reader, texts, found).pages()
    cut = {f"{name}.md" for name in CUT}
    whole = [
        _compiled(reader, folder / name, checkout.compiled, known.name)
        for name in texts
        if name not in cut and not name.startswith(("machines/", "messages/"))
    ]
    yield from whole
    extra = [(each.title, each.path) for each in whole]
    for path in sorted(folder.rglob("*.html")):
        name = path.relative_to(checkout.compiled).with_suffix("").as_posix()
        ready[name] = path
        extra.append((name.rpartition("/")[2], name))
    yield from gathered(known, extra)


def _compiled(reader: Reader, path: Path, folder: Path, family: str) -> Page:
    name = path.relative_to(folder).with_suffix("").as_posix()
    text = without_comments(path.read_text("utf-8"))
    text = reader.referring(text, f"{COMPILED}{name}.md", name, family)
    title = title_of(text, name)
    if family and name.count("/") == 1 and not title.startswith(family):
        text = text.replace(f"# {title}", f"# {family}: {title[0].lower()}{title[1:]}", 1)
    return Page(name, title_of(text, name), "page", text)


def _start(known: Mapping[str, Knowledge], pages: Sequence[Page]) -> Page:
    """The first page."""
    lines = ["# The specification", "", "One specification, as pages. Search finds every name.", ""]
    lines += ["## Families", "", *(f"- {link(name, f'{name}/index')}" for name in known), ""]
    for title, chosen in (
        ("Learn", [each for each in pages if each.kind == "lesson"]),
        ("Documents", [each for each in pages if each.kind == "page" and _is_first(each.path)]),
    ):
        if chosen:
            lines += [f"## {title}", "", *(f"- {link(each.title, each.path)}" for each in chosen), ""]
    return Page("index", "The specification", "index", "\n".join(lines))


def _is_first(path: str) -> bool:
    """Whether the first page names a document: those of docs/ itself, and those that lie beside it."""
    folder, _, name = path.rpartition("/")
    return folder in ("", "docs") or name == "index"


def _bound(pages: Sequence[Page], ready: Mapping[str, Path]) -> Book:
    """The pages with what leads to each of them, and links that HTML can follow."""
    by_path = {page.path: page for page in pages}
    leading: dict[str, dict[str, None]] = {}
    files: dict[str, None] = {}
    for page in pages:
        for kind, target, _ in _LINK.findall(page.text):
            if kind == FILE:
                files[target] = None
            elif target != page.path and page.kind != "index":
                leading.setdefault(target, {})[page.path] = None
    bound = {}
    for path, page in by_path.items():
        named = {target for _, target, _ in _LINK.findall(page.text)}
        sources = [by_path[name] for name in leading.get(path, ()) if name not in named]
        text = page.text.rstrip() + "\n" + "\n".join(_what_leads_here(sources))
        bound[path] = replace(page, text=_with_links(text, path))
    return Book(bound, tuple(files), ready)


def _what_leads_here(sources: Sequence[Page]) -> Iterator[str]:
    if sources:
        yield from ("", "## What leads here", "")
    for kind, heading in _KINDS.items():
        found = [link(each.title, each.path) for each in sources if each.kind == kind]
        if found:
            yield from (f"- {heading}: {', '.join(found)}",)
    yield ""


def _with_links(text: str, at: str) -> str:
    """References as the HTML of a page has them."""

    def html(match: re.Match[str]) -> str:
        kind, target, fragment = match.groups()
        if kind == FILE:
            where = posixpath.relpath(f"files/{target}.txt", posixpath.dirname(at) or ".")
            return f"](site:{where})"
        return f"](site:{relative(at, target, fragment or '')})"

    return _LINK.sub(html, text)
