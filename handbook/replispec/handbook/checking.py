"""Every link and anchor of a site, and that nothing of it comes from another host."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

# What a browser fetches by itself, as against what a reader may follow.
FETCHED: Final = {
    "img": "src",
    "script": "src",
    "iframe": "src",
    "embed": "src",
    "source": "src",
    "audio": "src",
    "video": "src",
    "link": "href",
    "image": "href",
    "use": "href",
    "object": "data",
}
_ABSOLUTE: Final = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)
_IN_STYLE: Final = re.compile(r"(?:url\(|@import)\s*['\"]?\s*((?:https?:)?//[^'\")\s;]+)", re.IGNORECASE)
# A link element that only says something of the page.
_NOT_FETCHED: Final = {"canonical", "search", "index", "next", "prev", "author", "license"}


@dataclass(slots=True)
class Checked:
    """What was found in a site: links counted, and complaints, a line each."""

    pages: int = 0
    links: int = 0
    complaints: list[str] = field(default_factory=list)


class _Reader(HTMLParser):
    """The anchors of a page, where its links lead, and what it fetches."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.anchors: set[str] = set()
        self.twice: list[str] = []
        self.links: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if name := given.get("id"):
            self.twice += [name] * (name in self.anchors)
            self.anchors.add(name)
        if tag == "a" and (to := given.get("href") or given.get("xlink:href")):
            self.links.append(to)
        wanted = FETCHED.get(tag)
        if wanted and (what := given.get(wanted)) and given.get("rel") not in _NOT_FETCHED:
            self.fetched.append(what)
        self.fetched += _IN_STYLE.findall(given.get("style") or "")


def check(site: Path, elsewhere: Collection[str] = ()) -> Checked:
    """Follow every link of every page; what leads to a file of `elsewhere` is not followed."""
    found = Checked()
    readers = {path.relative_to(site).as_posix(): _read(path) for path in sorted(site.rglob("*.html"))}
    found.pages = len(readers)
    for name, reader in readers.items():
        inside = [to for to in reader.links if not _ABSOLUTE.match(to)]
        found.links += len(inside)
        found.complaints += [
            f"{name}: {fault}" for to in inside for fault in _followed(site, readers, name, to, elsewhere)
        ]
        found.complaints += [f"{name}: has two anchors {anchor}" for anchor in reader.twice]
        for what in reader.fetched:
            if not _ABSOLUTE.match(what):
                found.complaints += [
                    f"{name}: {fault}" for fault in _followed(site, readers, name, what, elsewhere)
                ]
            elif not what.startswith("data:"):
                found.complaints.append(f"{name}: fetches {what}")
    for path in sorted(site.rglob("*.css")):
        text = path.read_text("utf-8", "replace")
        found.complaints += [f"{path.relative_to(site)}: fetches {what}" for what in _IN_STYLE.findall(text)]
    return found


def _read(path: Path) -> _Reader:
    reader = _Reader()
    reader.feed(path.read_text("utf-8"))
    return reader


def _followed(
    site: Path, readers: dict[str, _Reader], name: str, to: str, elsewhere: Collection[str]
) -> Iterator[str]:
    path, _, fragment = to.partition("#")
    path = path.partition("?")[0]
    target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
    if target.startswith(".."):
        yield f"leads out of the site: {to}"
    elif target in elsewhere:
        return
    elif not (site / target).is_file():
        yield f"leads to no file: {to}"
    elif fragment and target in readers and fragment not in readers[target].anchors:
        yield f"leads to no anchor: {to}"
