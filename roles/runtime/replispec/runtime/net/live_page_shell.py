"""The live page of a controller: one file, and the policy that lets only its own script and style run."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path
from typing import Final

from replispec.runtime.seeing.answers import ShownPage

_PARTS: Final = re.compile(r"<(script|style)>(.*?)</\1>", re.DOTALL)


def live_page() -> ShownPage:
    """The page as it is served."""
    text = Path(__file__).with_name("live_page.html").read_text(encoding="utf-8")
    sums = {name: _sum(inside) for name, inside in _PARTS.findall(text)}
    policy = (
        f"default-src 'none'; connect-src 'self'; style-src {sums['style']}; script-src {sums['script']}; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return ShownPage(text.encode(), policy)


def _sum(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
