"""An adapter around a subject of the lab: `replispec conformance run --adapter 'python -m lab.adapter NAME'`.

NAME is one of those that `python -m lab.subjects list` prints; a word after it is the family's. Standard
input and output belong to the suite that starts it: docs/adapter-protocol.md. Exit code 0: the suite ended
the run; 1: it broke the protocol; 2: this is no command; 3: something is not installed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from lab import families
from lab.errors import LabError, UsageError
from lab.family import LabFamily
from lab.subjects.registry import subject
from lab.subjects.subject import Subject
from replispec.runtime.adapting.adapter_shell import serve

USAGE = (
    "usage: python -m lab.adapter NAME [WORD], started by a suite: replispec conformance run --adapter ..."
)


def main(arguments: Sequence[str]) -> int:
    """Serve one subject and return the exit code."""
    try:
        if len(arguments) not in (1, 2) or sys.stdin.isatty():
            raise UsageError(USAGE)
        chosen = subject(arguments[0])
        chosen.fetch()
        adapted = _family_of(chosen).adapted
        if adapted is None:
            raise UsageError(f"no suite has {chosen.name} started: it is judged where it listens")
        return serve(adapted(chosen, arguments[1:]), 0, 1, sys.stderr)
    except LabError as error:
        sys.stderr.write(f"lab.adapter: {' '.join(str(error).split())}\n")
        return error.exit_code


def _family_of(chosen: Subject) -> LabFamily:
    every = map(families.in_the_lab, families.names())
    return next(each for each in every if any(one.name == chosen.name for one in each.subjects()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
