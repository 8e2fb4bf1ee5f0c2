"""Sentences of the specification about events, filled in with what was seen."""

from __future__ import annotations

import string
from typing import Any, Final


class _Sentences(string.Formatter):
    """What a set holds is told ascending, the same in every process."""

    def format_field(self, value: Any, format_spec: str) -> str:
        """The text of one value."""
        if isinstance(value, frozenset):
            return ", ".join(map(str, sorted(value))) or "none"
        return str(super().format_field(value, format_spec))


_SENTENCES: Final = _Sentences()


def said(template: str, variables: Any, event: Any) -> str:
    """The sentence with its {event.x}, {v.x} and {other.x} filled in."""
    return _SENTENCES.format(template, event=event, v=variables, other=variables)
