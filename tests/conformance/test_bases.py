"""Which demands are made of a subject is said by `--basis`, and by nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from replispec.conformance.cases import load
from replispec.wire.rocketmq.codes import ResponseCode
from tests.conformance.case_files import HEAD, a_case, after_the_probe, always, judged, write

REFUSED = ResponseCode.CONTROLLER_FENCED_MASTER_EPOCH


@pytest.mark.parametrize(
    ("bases", "verdicts"),
    [
        (("proposal",), ["pass"]),
        (("proposal", "ours"), ["pass", "fail"]),
        (("proposal", "apache"), ["fail"]),
        ((), ["fail", "fail"]),
    ],
)
def test_what_an_implementation_has_is_demanded_where_it_was_asked_for(
    tmp_path: Path, bases: tuple[str, ...], verdicts: list[str]
) -> None:
    """Proposals number no refusals; a case of ours does, whatever is asked for beside it."""
    step = "{send: {code: 9}, expect: [{code: CONTROLLER_INVALID_MASTER}]}"
    theirs = a_case(step).replace("basis: apache", "bugs: []", 1).replace("    bugs: []\n", "", 1)
    cases = load(
        "controller", write(tmp_path, HEAD + theirs + a_case(step, number=2).replace("apache", "ours"))
    )
    assert [each.basis for each in cases] == ["proposal", "ours"]
    run = judged(cases, after_the_probe(always(REFUSED)), plan={"bases": bases})
    assert [each.verdict.value for each in run.results] == verdicts
