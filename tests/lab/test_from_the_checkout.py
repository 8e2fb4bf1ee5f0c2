"""What the Makefile runs is found from the checkout, without a variable that says where."""

import os
import re
import subprocess
import sys

import pytest

from tests.house.tree import ROOT

MAKEFILE = (ROOT / "Makefile").read_text()
MODULES = sorted(set(re.findall(r"-m ((?:lab|benchmarks)[.\w]*)", MAKEFILE)))


def test_the_makefile_names_the_modules_and_no_search_path() -> None:
    assert {"lab.demo", "lab.interop", "lab.kills", "lab.conformance", "benchmarks.bench_roles"} <= {*MODULES}
    assert "PYTHONPATH" not in MAKEFILE


@pytest.mark.parametrize("module", MODULES)
def test_each_module_says_its_usage(module: str) -> None:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-m", module, "--help"],
        cwd=ROOT,
        env=kept,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "usage: " in done.stdout
