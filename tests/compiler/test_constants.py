"""Constants of a family: their values, those that stand elsewhere among them, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from replispec.compiler.model.message import SpecificationError
from replispec.wire.rocketmq import constants
from tests.compiler.small_family import write
from tests.compiler.test_machine_refusals import compile_again

FILE = "constants/small/constants.yaml"


def compiled(folder: Path, *lines: str) -> dict[str, str]:
    """What the compiler makes of the small family with these constants."""
    path = write(folder) / FILE
    path.parent.mkdir(parents=True)
    path.write_text("\n".join(["constants:", *(f"  {line}" for line in lines), ""]))
    return {name: data.decode() for name, data in compile_again(folder).items()}


def test_a_constant_is_a_name_and_a_row(tmp_path: Path) -> None:
    files = compiled(
        tmp_path,
        "GREETING: {value: hello, about: What is said first.}",
        "CALLS: {default_of: callsMax, about: How many at a time.}",
        "NUMBER_MAX: {greatest_of: Ping.number, about: The last number.}",
    )
    module = files["replispec/wire/small/constants.py"]
    assert 'GREETING: Final = "hello"\n"""What is said first."""\n' in module
    assert "CALLS: Final = 3\n" in module
    assert f"NUMBER_MAX: Final = {2**63 - 1}\n" in module
    assert (
        "| `CALLS` | `3` | How many at a time. | the default of callsMax |"
        in files["docs/small/constants.md"].splitlines()
    )


def test_the_greatest_that_a_field_holds_follows_from_its_bytes_and_its_bound() -> None:
    assert (constants.OPAQUE_MAX, constants.OPEN_EPOCH_END) == (2**31 - 1, 2**63 - 1)
    assert constants.PROPERTIES_BYTES_MAX == 2**15 - 1


@pytest.mark.parametrize(
    ("line", "fault", "advice"),
    [
        ("greeting: {value: 1, about: x}", "'greeting' is no name of a constant", "capitals"),
        ("A: {about: x}", "A has 0 values", "one of value, default_of, mask_of, greatest_of"),
        ("A: {value: 1, default_of: callsMax, about: x}", "A has 2 values", "one of value"),
        ("A: {value: true, about: x}", "neither a number nor a text", "write value: 0"),
        ("A: {default_of: callsMost, about: x}", "no parameter 'callsMost' has a default", "spec/parameters"),
        ("A: {default_of: callName, about: x}", "no parameter 'callName' has a default", "spec/parameters"),
        ("A: {mask_of: Ping.number, about: x}", "'Ping.number' is no field with a checksum", "MESSAGE.FIELD"),
        ("A: {mask_of: Ping.none, about: x}", "'Ping.none' is no field of a message", "MESSAGE.FIELD"),
        ("A: {greatest_of: Nobody.number, about: x}", "is no field of a message", "MESSAGE.FIELD"),
        ("A: {greatest_of: Ping.name, about: x}", "'Ping.name' has no bound", "a length in front"),
    ],
)
def test_a_fault_is_refused_at_its_line_with_advice(
    tmp_path: Path, line: str, fault: str, advice: str
) -> None:
    with pytest.raises(SpecificationError) as caught:
        compiled(tmp_path, line)
    place, _, words = str(caught.value).partition(": ")
    assert place == f"{FILE}:2"
    assert fault in words
    assert advice in words
