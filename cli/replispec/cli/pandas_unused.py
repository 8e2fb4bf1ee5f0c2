"""Arrow imports pandas, where it is installed, with the first array that it makes: a fifth of a small replay.

Nothing of the local engine uses it, so a process of ours says that it is not there, until Spark, which may
want it, is chosen. See docs/decisions/0103-a-small-replay-starts-without-pandas.md.
"""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec

NAME = "pandas"


class _LeftOut(MetaPathFinder):
    """Finds no pandas. (An entry of None in sys.modules would do, were Cython to heed it.)"""

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        """Refuse pandas, and leave all others to the finders behind."""
        if fullname == NAME:
            raise ModuleNotFoundError(f"no module named {NAME} for the local engine", name=NAME)
        return None


def leave_out() -> None:
    """From here on importing pandas fails, unless it was imported before."""
    sys.meta_path.insert(0, _LeftOut())


def let_in() -> None:
    """From here on pandas is imported where somebody asks for it."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _LeftOut)]
