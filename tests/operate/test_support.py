"""The page of the support bundle, followed word by word."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.operate.machines import cluster
from tests.operate.page import page


@pytest.mark.skipif(os.environ.get("REPLISPEC_CRASHES") != "all", reason="processes: of the long proofs")
def test_the_page_is_followed_word_by_word(tmp_path: Path) -> None:
    with cluster(tmp_path) as found:
        found.follow(page("support").steps)
