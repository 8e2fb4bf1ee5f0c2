"""The one module of the roles that knows YAML: files that people write for a running process."""

from __future__ import annotations

from typing import Any

import yaml  # noqa: TID251  the seam


class NotYamlError(Exception):
    """A text that is no YAML. Says the line alone: the text may hold secrets."""


def read(text: str) -> Any:
    """The value that a text is, of plain mappings, lists and scalars. Raises NotYamlError."""
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        raise NotYamlError(f"no YAML{f', line {mark.line + 1}' if mark else ''}") from None
