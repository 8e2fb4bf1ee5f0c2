"""What is written about systems: every key is explained, and each system has its page."""

from __future__ import annotations

import re

import pytest

from replispec.compiler.generate import generate
from replispec.compiler.read import system_effects, system_suite, systems
from tests.compiler.specification import ROOT
from tests.explorer.walkthrough import written

LANGUAGE = ROOT / "docs" / "specification.md"
KEYS = (
    *systems._SYSTEM_KEYS,
    *systems._PARTY_KEYS,
    *systems._MACHINE_KEYS,
    *systems._ACT_KEYS,
    *systems._PROMISE_KEYS,
    *system_suite.SUITE_KEYS,
    *system_effects._KEYS,
    *(key for beside in system_effects._KEYS.values() for key in beside),
    *systems.OF_MESSAGES,
)


def test_every_key_of_the_language_is_explained() -> None:
    section = LANGUAGE.read_text().partition("\n## Systems\n")[2].partition("\n## ")[0]
    before, _, after = section.split("```")
    words = {word for code in re.findall(r"`([^`]+)`", before + after) for word in re.findall(r"\w+", code)}
    assert sorted(set(KEYS) - words) == []


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = written(tmp_path_factory.mktemp("till"))
    return generate(folder / "spec")["docs/till/systems/one_sale.md"].decode()


@pytest.mark.parametrize(
    "line",
    [
        '    customer -->|"ask"| till',
        "| `desk` | [till](../machines/till.md) | `NEW` |  |",
        "| `ask` | asks each till by `customer.ask` |",
        "| `till` | 1 | Where things are sold. |",
        "| `lost` | 1 | how often it may happen |",
        "| messages | 2 | how many are on their way at once |",
        "- **sold_as_often_as_wanted**: Nothing is sold that nobody wanted.",
        "  In every state: `till.desk.sold <= customer.wish.purchase`",
        "  Whenever `customer.wish.WAITING`, a way without further harm leads to `customer.wish.CONTENT`",
    ],
)
def test_the_page_of_a_system_says_who_asks_whom_what_happens_and_what_is_promised(
    page: str, line: str
) -> None:
    assert line in page.splitlines()
