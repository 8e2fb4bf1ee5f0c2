"""Numbers on the command line."""

from __future__ import annotations

import math

import click


class Finite(click.FloatRange):
    """A number within bounds; `nan`, which is within all of them, is none."""

    def convert(self, value: float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """See click.ParamType."""
        found = float(super().convert(value, param, ctx))
        if math.isnan(found):
            self.fail(f"{value!r} is no number", param, ctx)
        return found
