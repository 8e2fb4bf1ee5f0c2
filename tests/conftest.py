"""What all tests share."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A loaded machine makes examples slow without making them wrong: no test may fail on time.
settings.register_profile(
    "house", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("house")


@pytest.fixture(scope="session")
def tshark_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder of settings for tshark. Skips without tshark; fails where changes are checked."""
    if shutil.which("tshark") is None:
        missing = "tshark is not installed (Debian, Ubuntu: apt-get install tshark)"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    return tmp_path_factory.mktemp("wireshark-settings")
