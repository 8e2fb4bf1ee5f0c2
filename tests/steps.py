"""What work costs, in lines of Python that are run: the same on every machine, whatever else it does."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps_of(action: Callable[[], object]) -> int:
    """How many lines an action runs."""
    count = 0

    def line(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return line

    before = sys.gettrace()
    sys.settrace(line)
    try:
        action()
    finally:
        sys.settrace(before)
    return count
