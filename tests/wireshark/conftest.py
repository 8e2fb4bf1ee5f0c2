"""tshark as a judge from outside: it must be there where changes are checked."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def tshark_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder of settings for tshark. Skips without tshark; fails where changes are checked."""
    if shutil.which("tshark") is None:
        missing = "tshark is not installed (Debian, Ubuntu: apt-get install tshark)"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    return tmp_path_factory.mktemp("wireshark-settings")
