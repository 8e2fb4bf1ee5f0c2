"""A Markdown page that exists becomes one of the site: its links lead to pages, and so do names in it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from replispec.handbook.places import REF, Places, link

FILE: Final = "file:"
COMPILED: Final = "generated/docs/"
_TOKEN: Final = re.compile(
    r"(?P<link>!?\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<url>[^)\s]+)\))"
    r"|(?P<code>`[^`]+`)"
    r"|(?P<word>(?<![\w/#.-])(?:[a-z-]+/[a-z0-9-]+/)?[A-Z][A-Z0-9]*(?:-[A-Z0-9]+)+(?:/[0-9]+)?(?![\w/]))"
    r"|(?P<camel>\b[A-Z][a-z0-9]+(?:[A-Z][A-Za-z0-9]*)+\b)"
)
_ELSEWHERE: Final = re.compile(r"[a-z]+:", re.IGNORECASE)
_FENCE: Final = re.compile(r" *(```+|~~~+)(.*)")
_COMMENT: Final = re.compile(r"<!--.*?-->\n*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Page:
    """One page: its path below the site without suffix, title, kind, and its Markdown with references."""

    path: str
    title: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Reader:
    """Makes references of what stands in Markdown files of a checkout; `documents` maps each to its page."""

    root: Path
    places: Places
    documents: dict[str, str]

    def referring(self, text: str, at: str, page: str, family: str = "") -> str:
        """The text with references; `at` is the file that it stands in, relative to the checkout, and `page`
        the page that it becomes."""

        def token(match: re.Match[str]) -> str:
            if match["link"]:
                return self._link(match, at)
            # A word like any other may be the name of a message only where one family alone is spoken of.
            if match["camel"] and not family:
                return match[0]
            name = (match["code"] or match["word"] or match["camel"]).strip("`")
            found = self.places.found(name, family)
            return match[0] if found is None or found[0] == page else link(match[0], *found)

        return outside_fences(text, lambda line: line if line.startswith("#") else _TOKEN.sub(token, line))

    def _link(self, match: re.Match[str], at: str) -> str:
        where = self._where(match["url"], at)
        return match["text"] if where is None else match[0].replace(f"({match['url']})", f"({where})")

    def _where(self, url: str, at: str) -> str | None:
        """What a link becomes; None where nothing of the site can be shown for it."""
        if _ELSEWHERE.match(url):
            return url
        path, _, fragment = url.partition("#")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(at), path)) if path else at
        if target.startswith(COMPILED) and target.endswith(".md"):
            compiled, fragment = self.places.of_compiled(
                target.removeprefix(COMPILED).removesuffix(".md"), fragment
            )
            return f"{REF}{compiled}{f'#{fragment}' * bool(fragment)}"
        for name in (target, f"{target}/README.md"):
            if name in self.documents:
                return f"{REF}{self.documents[name]}{f'#{fragment}' * bool(fragment)}"
        inside = not target.startswith("..") and (self.root / target).is_file()
        return f"{FILE}{target}" if inside else None


def outside_fences(text: str, change: Callable[[str], str]) -> str:
    """Change every line that is not code."""
    return "\n".join(_changed(text.split("\n"), change))


def _changed(lines: Iterable[str], change: Callable[[str], str]) -> Iterator[str]:
    fence = ""
    for line in lines:
        match = _FENCE.match(line)
        if match and not fence:
            fence = match[1]
        elif match and match[1].startswith(fence) and not match[2].strip():
            fence = ""
            yield line
            continue
        yield line if fence else change(line)


def without_comments(text: str) -> str:
    """The text without the lines that say where a generated page comes from."""
    return _COMMENT.sub("", text)


def title_of(text: str, otherwise: str) -> str:
    """The first heading."""
    found = re.search(r"^# (.+)$", text, re.MULTILINE)
    return found[1].strip() if found else otherwise


def sections(text: str) -> dict[str, str]:
    """What stands below each heading of the second level, by the heading."""
    found: dict[str, list[str]] = {}
    here: list[str] = []
    for line in without_comments(text).split("\n"):
        if line.startswith("## "):
            here = found.setdefault(line.removeprefix("## ").strip(), [])
        else:
            here.append(line)
    return {title: "\n".join(lines).strip() for title, lines in found.items()}


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """Lines of a table; none without rows."""
    cells = [" | ".join(cell.replace("\n", " ") for cell in row) for row in rows]
    titles = list(head)
    if not cells:
        return []
    return [
        "",
        f"| {' | '.join(titles)} |",
        f"|{' --- |' * len(titles)}",
        *(f"| {row} |" for row in cells),
        "",
    ]


def cell(text: str) -> str:
    """A text that fits into a table."""
    return " ".join(text.split()).replace("|", "\\|")
