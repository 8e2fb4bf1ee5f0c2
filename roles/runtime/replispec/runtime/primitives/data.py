"""Data files beside generated modules."""

from __future__ import annotations

from importlib import resources
from typing import Any

import orjson


def load(package: str, name: str) -> Any:
    """The JSON of the file `name` in a package."""
    return orjson.loads(resources.files(package).joinpath(name).read_bytes())
