"""What a replay said of a generated capture, beside what the generator knows: measured work has to be right.

A truth holds `frames` by protocol, `rows` (for each group and rule the verdict and how often it is
evaluated) and `losses`, as a generator of a family writes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SHOWN = 10
Document = Mapping[str, Any]

# What a generator does not tell of a loss: the file's name, and the digest by which two replays are compared.
UNTOLD = frozenset(("file", "places"))


def disagreements(summary: Document, truth: Document) -> list[str]:
    """Where the summary of one capture is not the truth, a line each; a rule that the truth does not know
    must at least not be violated."""
    (capture,) = summary["captures"]
    found = [f"the capture: {capture['error']}"] if capture["error"] else []
    frames = capture["frames_remoting"] + capture["frames_ha"]
    sent = sum(truth["frames"].values())
    found += [f"{frames} frames, {sent} were sent"] if frames != sent else []
    losses = [{key: loss[key] for key in loss if key not in UNTOLD} for loss in summary["losses"]]
    found += (
        [f"losses {losses[:SHOWN]}, truth {truth['losses'][:SHOWN]}"] if losses != truth["losses"] else []
    )
    return found + _rows(summary, truth)


def _rows(summary: Document, truth: Document) -> list[str]:
    said = {(row["group"], row["invariant"]): row for row in summary["findings"]}
    known = {(group, rule): row for group, rows in truth["rows"].items() for rule, row in rows.items()}
    found = []
    for key in sorted(said.keys() | known.keys()):
        row, wanted = said.get(key), known.get(key)
        if row is None:
            found.append(f"{key[1]} of {key[0]}: not judged, {wanted} is the truth")
        elif wanted is None:
            found += [f"{key[1]} of {key[0]}: violated"] if row["verdict"] == "violated" else []
        elif (row["verdict"], row["evaluated"]) != (wanted["verdict"], wanted["evaluated"]):
            proofs = [each["text"] for each in row["evidence"][:2]]
            found.append(f"{key[1]} of {key[0]}: {row['verdict']}, {row['evaluated']}; {wanted}; {proofs}")
    return found
