"""What `make mutants` samples: every single edit, each with a name of its own."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.binding_edits import binding_changes
from lab.edits import edits

SPEC = Path(__file__).parents[2] / "spec"
BOUND: dict[str, Any] = {
    "events": {
        "asked": {
            "message": "Ask",
            "if": "header.urgent == true",
            "fields": {"count": "int64", "sure": "bool", "who": "string or none", "tags": "set int64"},
            "from": {"count": "header.count", "sure": "local.sure", "who": "header.who", "tags": "body.tags"},
            "refused": [{"if": "header.count == none", "code": "ResponseCode.BUSY"}],
            "record": {
                "case": "ask",
                "fields": {"count": "n", "sure": "s", "tags": {"field": "t"}},
                "derived": {"more": "event.count"},
            },
        },
        "said": {"sends": {"Tell": {"count": "count"}, "TellOld": None}},
        "written": {"sends": "Line"},
        "told": {
            "received_as": [
                {"message": "Tell", "codes": "ResponseCode.OK"},
                {"answer_to": ["Ask", "Beg"], "codes": ["ResponseCode.OK", "ResponseCode.BUSY"]},
            ]
        },
    },
    "answers": {
        "yes": "ResponseCode.OK",
        "no": {
            "code": "ResponseCode.BUSY",
            "counts_as": "yes",
            "releases": "apache@5.1.1..",
            "header": {"count": "count"},
            "body": {"tags": "tags"},
        },
    },
    "sends": {"beg": {"Beg": {"who": "local.who", "count": "count", "body": {"tags": "tags"}}}},
    "views": {"shown": {"message": "Shown", "fields": {"count": "count"}}},
    "notices": {"shout": {"message": "Shout", "header": {"count": "count"}}},
}
OTHER_RELEASES = ("apache@..5.0.0", "apache@9.0.0..")
EXPECTED = [
    ("binding", "event asked is what it was not"),
    ("binding", "event asked takes count from first(header.count, 0) + 1"),
    ("binding", "event asked takes sure from not (local.sure)"),
    ("binding", "event asked takes who from none"),
    ("binding", "event asked is not refused if header.count == none"),
    ("binding", "event asked is refused with ResponseCode.OK"),
    ("record", "record of asked swaps count and sure"),
    ("record", "record of asked has no derived"),
    ("binding", "event told as received 0 is not received"),
    ("binding", "event told as received 0 is received as ResponseCode.BUSY"),
    ("binding", "event told as received 1 is not received"),
    ("binding", "event told as received 1 is not of ResponseCode.OK"),
    ("binding", "event told as received 1 is not of ResponseCode.BUSY"),
    ("binding", "event told as received 1 is not of Ask"),
    ("binding", "event told as received 1 is not of Beg"),
    ("answer", "answer yes is ResponseCode.BUSY"),
    ("answer", "answer no is ResponseCode.OK"),
    ("counts_as", "answer no counts as nothing else"),
    ("counts_as", "answer no counts in apache@..5.0.0"),
    ("counts_as", "answer no counts in apache@9.0.0.."),
    ("answer", "answer no says no header.count"),
    ("answer", "answer no says no body.tags"),
    ("notice", "notice shout says no header.count"),
    ("payload", "Tell of said says no count"),
    ("payload", "Beg of beg says no who"),
    ("payload", "Beg of beg says no count"),
    ("payload", "Beg of beg swaps who and count"),
    ("payload", "body of Beg of beg says no tags"),
    ("view", "view shown says no count"),
]


def test_everything_that_binds_a_machine_is_edited() -> None:
    found = [(kind, name) for kind, name, _ in binding_changes(BOUND, OTHER_RELEASES)]
    assert sorted(found) == sorted(EXPECTED)


@pytest.mark.parametrize("name", [name for _, name in EXPECTED])
def test_an_edit_changes_its_document(name: str) -> None:
    (change,) = (change for _, each, change in binding_changes(BOUND, OTHER_RELEASES) if each == name)
    changed = copy.deepcopy(BOUND)
    change(changed)
    assert changed != BOUND


def test_edits_of_the_specification_have_names_of_their_own() -> None:
    every = edits(SPEC)
    assert len({edit.name for edit in every}) == len(every)
    assert {"edge", "guard", "effect", "binding", "answer", "option", "default"} <= {
        edit.kind for edit in every
    }


def test_an_edit_that_nobody_can_notice_is_one_that_can_be_made() -> None:
    equivalent = yaml.safe_load((SPEC.parent / "lab" / "equivalent_edits.yaml").read_text("utf-8"))
    assert equivalent.keys() <= {edit.name for edit in edits(SPEC)}
