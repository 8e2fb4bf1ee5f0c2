"""What hatchling packs into a wheel: the part of `replispec` in each room, and the cases of the suite."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# Data that lies beside its package in a checkout, where people read it, and inside it in a wheel.
DATA = {"conformance/cases": "replispec/conformance/cases"}


class Rooms(BuildHookInterface[Any]):
    """Packs the rooms of `dev-mode-dirs` in pyproject.toml, the one list of them."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add every room to a wheel; an editable install finds the rooms through the same list by itself."""
        if version == "editable":
            return
        root = Path(self.root)
        for room in self.build_config.dev_mode_dirs:
            build_data["force_include"][str(root / room / "replispec")] = "replispec"
        build_data["force_include"].update({str(root / data): place for data, place in DATA.items()})
