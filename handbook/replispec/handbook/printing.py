"""A book becomes HTML: Sphinx reads its Markdown with MyST, and dresses it with Furo.

This is the one module that knows them. It is an extension of Sphinx too, which lets links through unchanged.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from io import StringIO
from pathlib import Path
from typing import Any, Final

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish
from sphinx.util.docutils import docutils_namespace, patch_docutils

from replispec.handbook.book import Book
from replispec.handbook.documents import Page

SCHEME: Final = "site:"
MARK: Final = ".replispec-site"
LOOKS: Final = Path(__file__).parent / "looks"
_KINDS_IN_NAVIGATION: Final = ("index", "document", "machine", "page", "lesson")


class PrintingError(Exception):
    """What Sphinx found wrong with the pages, or a folder that is not ours to replace."""


def print_book(book: Book, out: Path, work: Path, *, workers: int = 1) -> None:
    """Write the site below `out`, in place of an earlier one; `work` is a folder for what lies between.

    Raises PrintingError for pages that Sphinx complains of, and where `out` holds something else.
    """
    if out.exists() and any(out.iterdir()) and not (out / MARK).is_file():
        raise PrintingError(f"{out} holds no site: name an empty folder, or one that does not exist")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    (out / MARK).touch()
    pages = work / "pages"
    for page in book.pages.values():
        path = pages / f"{page.path}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_source(page, book), "utf-8")
    said = StringIO()
    with docutils_namespace(), patch_docutils():
        app = Sphinx(
            srcdir=pages,
            confdir=None,
            outdir=out,
            doctreedir=work / "read",
            buildername="html",
            confoverrides=_settings(),
            status=None,
            warning=said,
            parallel=workers,
        )
        app.build()
    if said.getvalue():
        raise PrintingError(said.getvalue())


def add_files(book: Book, root: Path, out: Path) -> None:
    """Lay files of a checkout beside the pages that name them, and pages of others where they belong."""
    for name in book.files:
        target = out / "files" / f"{name}.txt"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / name, target)
    for name, path in book.ready.items():
        target = out / f"{name}.html"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)


def _settings() -> dict[str, Any]:
    return {
        "project": "replispec",
        "extensions": ["myst_parser", __name__],
        "html_theme": "furo",
        "html_title": "replispec",
        "html_static_path": [str(LOOKS)],
        "html_css_files": ["site.css"],
        "html_js_files": [("numbers.js", {"defer": "defer"})],
        "html_copy_source": False,
        "html_show_sourcelink": False,
        "html_show_sphinx": False,
        "html_show_copyright": False,
        "html_show_search_summary": False,
        "html_permalinks": True,
        "html_use_index": False,
        "html_domain_indices": False,
        "myst_heading_anchors": 6,
        "myst_url_schemes": {"http": None, "https": None, "mailto": None, "site": None},
        # Pages of others may begin with any heading, and hold code that nobody colours.
        "suppress_warnings": ["myst.header", "misc.highlighting_failure"],
        "keep_warnings": False,
    }


def _source(page: Page, book: Book) -> str:
    if page.path == "index":
        return page.text + "\n" + "\n".join(_navigation(book.pages))
    shown = page.path in _in_navigation(book.pages)
    return page.text if shown else f"---\norphan: true\n---\n\n{page.text}"


def _in_navigation(pages: Mapping[str, Page]) -> dict[str, str]:
    """The pages at the side, each with its heading: all but the many that indexes lead to."""
    return {
        path: path.partition("/")[0] if "/" in path else "more"
        for path, page in pages.items()
        if page.kind in _KINDS_IN_NAVIGATION and path != "index" and not path.startswith("docs/decisions/0")
    }


def _navigation(pages: Mapping[str, Page]) -> Iterator[str]:
    """Lists of pages, hidden in the first one, which Sphinx shows at the side of all."""
    groups: dict[str, list[str]] = {}
    for path, group in _in_navigation(pages).items():
        groups.setdefault(group, []).append(path)
    for group, paths in sorted(groups.items(), key=lambda each: (each[0] != "docs", each[0])):
        yield from ("", "```{toctree}", ":hidden:", f":caption: {group}", "")
        for path in sorted(paths, key=lambda path: _rank(pages[path], group)):
            title = pages[path].title.replace("`", "").replace("<", "").removeprefix(f"{group}: ")
            yield f"{title} <{path}>"
        yield "```"


def _rank(page: Page, group: str) -> tuple[bool, bool, bool, str]:
    """Where a page stands among those of its heading: the first page, lessons, indexes, then by title."""
    return page.path != f"{group}/index", page.kind != "lesson", page.kind != "index", page.title.lower()


class SearchWithNumbers(SearchEnglish):
    """English, with numbers: they are codes, and whoever looks at a capture searches for these."""

    def word_filter(self, word: str) -> bool:
        """Whether a word can be found."""
        return word.isdigit() or super().word_filter(word)


def setup(app: Sphinx) -> dict[str, Any]:
    """What Sphinx calls of its extensions."""
    app.connect("doctree-read", _finish)
    app.add_search_language(SearchWithNumbers)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _finish(_: Sphinx, tree: nodes.document) -> None:
    for link in tree.findall(nodes.reference):
        if link.get("refuri", "").startswith(SCHEME):
            link["refuri"] = link["refuri"].removeprefix(SCHEME)
