"""A page in a real headless browser: what it complains of, how wide it is, what it paints.

The browser is Debian's Chromium, run once per question with settings of its own and without a network.
"""

from __future__ import annotations

import json
import os
import subprocess
import zlib
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[np.uint8]
Line = npt.NDArray[np.uint8]

BROWSER = "chromium"
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
    "--enable-logging=stderr",
)
POLICY = '<meta http-equiv="Content-Security-Policy"'
# Runs in a copy of the page. An element sticks out when it ends right of the window and no box around it
# scrolls; the title then holds all answers.
MEASURE = """
<script>
const wide = document.documentElement.clientWidth;
const scrolls = element => element && (
  getComputedStyle(element).overflowX !== "visible" || scrolls(element.parentElement));
const headline = document.querySelector(".headline strong");
const place = headline.getBoundingClientRect();
const seen = document.elementFromPoint(place.x + 4, place.y + place.height / 2);
document.title = JSON.stringify({
  window_width: wide,
  page_width: document.documentElement.scrollWidth,
  sticking_out: [...document.body.querySelectorAll("*")]
    .filter(element => element.getBoundingClientRect().right > wide + 1 && !scrolls(element.parentElement))
    .map(element => element.tagName + "." + element.className),
  headline: headline.innerText,
  headline_bottom: place.bottom,
  headline_is_on_top: seen === headline,
  headline_colours: [
    getComputedStyle(headline).color, getComputedStyle(headline.parentElement).backgroundColor],
  sections: [...document.querySelectorAll("section[id]")].map(section => ({
    id: section.id, height: section.getBoundingClientRect().height, text: section.textContent,
    bars: [...section.querySelectorAll(".step")].filter(bar => bar.getBBox().width >= 2).length,
  })),
  broken_words: [...document.querySelectorAll("th, td.number")].flatMap(cell => {
    const broken = [], texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      for (const word of texts.currentNode.data.matchAll(/\\S+/g)) {
        const range = document.createRange();
        range.setStart(texts.currentNode, word.index);
        range.setEnd(texts.currentNode, word.index + word[0].length);
        if (new Set([...range.getClientRects()].map(line => line.top)).size > 1) broken.push(word[0]);
      }
    }
    return broken;
  }),
  hole_marks: document.querySelectorAll("svg .mark.hole").length,
  pictures: [...document.querySelectorAll("svg")].map(picture => {
    const box = picture.getBoundingClientRect();
    const texts = [...picture.querySelectorAll("text")].map(text => text.getBBox());
    const room = picture.viewBox.baseVal;
    return {
      width: box.width, height: box.height,
      texts_outside: texts.filter(
        text => text.x < 0 || text.y < 0 || text.x + text.width > room.width + 1
          || text.y + text.height > room.height + 1).length,
    };
  }),
});
</script>
"""


@dataclass(frozen=True, slots=True)
class Shown:
    """What one run of the browser gave: its standard output, and what the page wrote to the console."""

    output: str
    console: tuple[str, ...]


def show(page: Path | str, home: Path, *arguments: str, width: int = 1280, height: int = 1600) -> Shown:
    """Open a page, a file or a URL, in a window of so many pixels. `home` is an empty folder of its own."""
    command = [BROWSER, *OPTIONS, f"--user-data-dir={home / 'settings'}", f"--window-size={width},{height}"]
    environment = {**os.environ, "HOME": str(home)}
    done = subprocess.run(
        [*command, *arguments, page if isinstance(page, str) else page.as_uri()],
        capture_output=True,
        check=False,
        env=environment,
        timeout=120,
    )
    said = done.stderr.decode("utf-8", "replace").splitlines()
    assert done.returncode == 0, said
    return Shown(done.stdout.decode("utf-8", "replace"), tuple(line for line in said if "CONSOLE" in line))


def measure(page: Path, home: Path, *, width: int = 1280) -> dict[str, Any]:
    """What MEASURE found in a copy of the page that may run scripts, at this width in pixels."""
    text = page.read_text()
    before, policy, after = text.partition(POLICY)
    assert policy, "the page allows scripts"
    home.mkdir()
    copy = home / "measured.html"
    _, _, rest = after.partition("\n")
    copy.write_text(before + rest.replace("</body>", f"{MEASURE}</body>"))
    shown = show(copy, home, "--dump-dom", width=width)
    assert shown.console == ()
    title, _, _ = shown.output.partition("<title>")[2].partition("</title>")
    found: dict[str, Any] = json.loads(unescape(title))
    return found


def screenshot(page: Path, home: Path, *arguments: str, height: int = 700) -> Pixels:
    """What a window of 1280 pixels shows of the page: rows, columns and red, green, blue, one byte each."""
    home.mkdir()
    picture = home / "page.png"
    assert show(page, home, f"--screenshot={picture}", *arguments, height=height).console == ()
    return read_png(picture.read_bytes())


def colours(pixels: Pixels) -> set[tuple[int, ...]]:
    """The colours that occur."""
    red, green, blue = (pixels[:, :, channel].astype(np.uint32) for channel in range(3))
    packed = np.unique(red << 16 | green << 8 | blue).tolist()
    return {(colour >> 16, colour >> 8 & 0xFF, colour & 0xFF) for colour in packed}


def read_png(data: bytes) -> Pixels:
    """A PNG of 8 bits a channel, RGB, not interlaced, as the browser writes it.

    Source: Portable Network Graphics, third edition, "Filter types for filter method 0".
    """
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, header, packed = 8, b"", b""
    while at < len(data):
        size, kind = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        content = data[at + 8 : at + 8 + size]
        header = content if kind == b"IHDR" else header
        packed += content if kind == b"IDAT" else b""
        at += size + 12
    width, height = int.from_bytes(header[:4], "big"), int.from_bytes(header[4:8], "big")
    assert header[8:] == bytes([8, 2, 0, 0, 0]), "another kind of PNG"
    lines = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, 1 + 3 * width)
    rows = np.zeros((height + 1, 3 * width), np.uint8)
    for number, line in enumerate(lines):
        rows[number + 1] = _unfiltered(int(line[0]), line[1:], rows[number])
    return rows[1:].reshape(height, width, 3)


def _unfiltered(kind: int, line: Line, above: Line) -> Line:
    match kind:
        case 0:
            return line
        case 1:
            return np.cumsum(line.reshape(-1, 3), axis=0, dtype=np.uint8).reshape(-1)
        case 2:
            return line + above
        case _:
            predict = {3: _average, 4: _paeth}[kind]
    upper = bytes(3) + above.tobytes()
    row = bytearray(3)
    for at, value in enumerate(line.tolist()):
        row.append((value + predict(row[at], upper[at + 3], upper[at])) & 0xFF)
    return np.frombuffer(row, np.uint8)[3:]


def _average(left: int, up: int, _: int) -> int:
    return (left + up) // 2


def _paeth(left: int, up: int, corner: int) -> int:
    to_left, to_up, to_corner = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
    if to_left <= to_up and to_left <= to_corner:
        return left
    return up if to_up <= to_corner else corner
