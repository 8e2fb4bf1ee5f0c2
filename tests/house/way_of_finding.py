"""The way of one exchange through the replay: every function of ours between a packet and the findings.

`python tests/house/way_of_finding.py CHECKOUT CAPTURE`, with the Python of that checkout's environment: the
command line of that checkout replays the capture in this process, and the interpreter tells of each function
that is entered. Writing, the report and the command line itself are left out, so are functions without a
name of their own. It runs on older checkouts too, so it takes nothing but the command line.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
import tempfile
from contextlib import redirect_stdout, suppress
from io import BytesIO, TextIOWrapper
from pathlib import Path
from types import FrameType

from replispec.cli.main import main as command_line

LEFT_OUT = (".venv", "tests", "cli/")
ENGINE, REPORT = "local", "/report/"
Where = tuple[str, str, int]
"""File relative to the checkout, name, line."""


class Tracer:
    """Notes which functions of a checkout are entered."""

    def __init__(self, root: Path) -> None:
        self._root = f"{root}{os.sep}"
        self.entered: set[Where] = set()

    def hear(self, frame: FrameType, event: str, _argument: object) -> None:
        """What the interpreter calls."""
        code = frame.f_code
        is_function = code.co_flags & inspect.CO_OPTIMIZED and not code.co_name.startswith("<")
        if event != "call" or not is_function or not code.co_filename.startswith(self._root):
            return
        file = code.co_filename.removeprefix(self._root)
        if not file.startswith(LEFT_OUT) and REPORT not in file:
            self.entered.add((file, code.co_qualname, code.co_firstlineno))


def main() -> None:
    """Print one line of JSON: a list that holds the sorted list of who was entered."""
    root, capture = Path(sys.argv[1]).resolve(), sys.argv[2]
    tracer = Tracer(root)
    with tempfile.TemporaryDirectory(prefix="replispec-way-") as out:
        sys.argv[1:] = ["replay", capture, "--engine", ENGINE, "--out", out]
        with redirect_stdout(TextIOWrapper(BytesIO())), suppress(SystemExit):
            sys.setprofile(tracer.hear)
            command_line()
        sys.setprofile(None)
    sys.stdout.write(json.dumps([sorted(tracer.entered)]))


if __name__ == "__main__":
    main()
