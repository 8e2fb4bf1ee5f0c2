"""The version of this program, for roles: to ask a distribution for it takes a quarter of their start."""

from typing import Final

VERSION: Final = "0.1.0"
