"""As whom `replispec admin` speaks: what cannot be a key is a wrong command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import replispec


@pytest.mark.parametrize("key", ["administrator\udcff", "two\nlines", "bell\a"])
def test_a_key_that_is_no_text_is_a_wrong_command_line(tmp_path: Path, key: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text("a-secret-of-tests\n")
    words = [
        "admin",
        "clusterList",
        "-n",
        "127.0.0.1:1",
        "--access-key",
        key,
        "--secret-key-file",
        str(secret),
    ]
    refused = replispec(*words)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--access-key is no text" in refused.stderr
    assert "Traceback" not in refused.stderr
