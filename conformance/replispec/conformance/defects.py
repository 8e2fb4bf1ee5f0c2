"""Known defects of implementations, by the marks that cases and lists of expected failures give them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from replispec.conformance.model import CaseError
from replispec.conformance.sources import read
from replispec.conformance.steps import listed, only, text

FILE = "defects.yaml"


@dataclass(frozen=True, slots=True)
class Defect:
    """What is wrong, and where it was reported; nowhere, when `upstream` is empty."""

    mark: str
    says: str
    upstream: tuple[str, ...]


def load_defects(folder: Path) -> Mapping[str, Defect]:
    """The defects of a folder of cases, by mark; none where it has no such file. Raises CaseError."""
    path = folder / FILE
    if not path.is_file():
        return {}
    item = read(path, FILE)
    only(item, ("defects",))
    found = {}
    for mark, each in item.mapping("the list")["defects"].mapping("defects").items():
        only(each, ("says", "upstream"))
        parts = each.mapping(mark)
        if "says" not in parts:
            raise CaseError(each.place, f"{mark} needs `says`: what is wrong")
        found[mark] = Defect(mark, text(parts["says"]), listed(parts.get("upstream")))
    return found
