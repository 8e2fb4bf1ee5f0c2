"""Arrays of numbers in files of their own."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt


def save(numbers: npt.NDArray[Any], path: Path) -> None:
    """Write an array as `numpy.load` reads it.

    Raises OSError with its reason, which `numpy.save` leaves out.
    """
    header = io.BytesIO()
    about = np.lib.format.header_data_from_array_1_0(numbers)
    np.lib.format.write_array_header_1_0(header, about)
    with path.open("wb") as file:
        file.write(header.getvalue())
        file.write(np.ascontiguousarray(numbers).data)
