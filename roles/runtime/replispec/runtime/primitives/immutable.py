"""Values that nobody changes, as cheap to make as those that one could."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def immutable(cls: type[T]) -> type[T]:
    """A class decorator like `dataclass(frozen=True, slots=True)` for what is made with every message.

    The type checker holds everybody to it. At run time nothing does: a frozen dataclass puts each field in
    by a call, and takes three times as long to make.
    """
    made: Any = dataclass(slots=True, unsafe_hash=True)(cls)
    result: type[T] = made
    return result
