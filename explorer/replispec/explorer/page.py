"""One page that stands alone: stories step by step, and every other event that a reader may choose instead.

What the page shows comes from the specification and from messages; it is data to the page's script, which
writes it as text and never as markup.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import jinja2

from replispec.explorer.errors import ExplorationError
from replispec.explorer.neighbourhood import STATES, STEPS, Neighbourhood, neighbourhood_of
from replispec.explorer.report import Findings
from replispec.explorer.search import Search
from replispec.explorer.stories import facts_of, packet_text

BYTES_MAX: Final = 5_000_000
"""Of a page: a browser opens it at once, and it can be sent to somebody."""
_UNSAFE: Final = {ord(each): f"\\u{ord(each):04x}" for each in "<>&\u2028\u2029"}


def page_of(
    report: Findings, search: Search, *, steps: int = STEPS, states: int = STATES, bytes_max: int = BYTES_MAX
) -> str:
    """The page of an exploration. Raises ExplorationError when its stories alone are too long for one.

    `steps` and `states` bound what is on it beside the stories; while it is too large, half as many are.
    """
    while True:
        found = neighbourhood_of(search, steps=steps, states=states)
        text = _filled(report, _data(report, found))
        if len(text.encode()) <= bytes_max:
            return text
        if not states:
            raise ExplorationError(f"the stories make a page of more than {bytes_max:,} bytes: write --json")
        states //= 2


def _data(report: Findings, found: Neighbourhood) -> dict[str, Any]:
    """What the page's script reads: texts once each, states and choices by their numbers."""
    texts: dict[str, int] = {}
    values: dict[str, list[tuple[str, str]]] = {}
    system = found.moves.composed.system
    states = [_state(found, number, texts, values) for number in range(len(found.rows))]
    return {
        "instances": [place.name for place in found.moves.composed.places],
        "budgets": list(system.budgets),
        "values": values,
        "states": states,
        "outside": sorted(found.outside),
        "within": report.bounds["within"],
        "tours": [
            {
                "promise": each.broken.promise if each.broken else "",
                "about": each.broken.text if each.broken else "",
                "states": each.states,
                "says": each.says,
                "circle": each.circle,
                "closing": each.closing,
            }
            for each in found.tours
        ],
        "texts": list(texts),
        "covers": _covers(found),
    }


def _state(
    found: Neighbourhood, number: int, texts: dict[str, int], values: dict[str, list[tuple[str, str]]]
) -> list[Any]:
    """[instances, what is left of each budget, messages, choices as [who, what, to, why nothing follows]]"""
    row, moves = found.rows[number], found.moves
    places = [f"{place}:{row[place]}" for place in range(moves.places)]
    if any(key not in values for key in places):
        for key, facts in zip(places, facts_of(moves, row).values(), strict=True):
            values[key] = list(facts.items())

    def text(said: str) -> int:
        return texts.setdefault(said, len(texts))

    return [
        [int(each) for each in row[: moves.places]],
        [int(each) for each in row[moves.places : moves.slots_at]],
        [text(packet_text(moves.composed, each)) for each in moves.packets_in(row)],
        [
            [text(each.who), text(each.says), each.to, text(each.barred) if each.barred else None]
            for each in found.choices[number]
        ],
    ]


def _covers(found: Neighbourhood) -> str:
    """Which states are on the page, in words."""
    count = f"{len(found.rows):,} states"
    if found.whole:
        return f"All {count} that can be reached are on this page."
    way = "the stories" if found.tours[0].broken else "the start"
    near = f" and all within {found.nearest} steps of them" if found.nearest else ""
    more = f", and {found.further:,} that are one step further" if found.further else ""
    return (
        f"{count} are on this page: all of {way}{near}{more}. Here it was cut: events that lead elsewhere are"
        " listed and cannot be chosen."
    )


def _filled(report: Findings, data: Mapping[str, Any]) -> str:
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).translate(_UNSAFE)
    environment = _environment()
    script = environment.get_template("script.js").render()
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template("page.html").render(
        report=report, data=text, script=script, digest=digest, covers=data["covers"]
    )


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("replispec.explorer"),
        autoescape=jinja2.select_autoescape(["html"]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
