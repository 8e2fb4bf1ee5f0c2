"""The walkthrough's system, compiled once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.explorer.walkthrough import written


@pytest.fixture(scope="session")
def till(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the walkthrough, before anything is mended."""
    return written(tmp_path_factory.mktemp("till"))
