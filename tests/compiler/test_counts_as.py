"""In which releases a refusal counts as another answer."""

from __future__ import annotations

from replispec.compiler.evolution.read import read_specification
from tests.compiler.specification import SPEC


def test_a_master_that_exists_counts_as_elected_where_elections_name_an_id() -> None:
    """Code 2011 meant something else before ids were persistent: requests by id tell the releases apart."""
    nodes = {each.id: each for each in read_specification(SPEC)["rocketmq"].below()}
    answer, asked = nodes["broker_set.answer_master_exists"], nodes["ElectMasterRequest.broker_id"]
    assert answer.facts["counts_as"] == "answer_elected"
    assert answer.facts["releases"] is not None
    assert answer.facts["releases"] == asked.facts["versions"]
