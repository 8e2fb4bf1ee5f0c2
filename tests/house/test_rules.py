"""The rules themselves: each finds the offence it is for, and lets the neighbouring innocent pass."""

import pytest

from tests.house.rules import (
    boolean_keys,
    called_builtins,
    forbidden_imports,
    local_links,
    long_lines,
    request_codes,
    sizes,
    unbounded_digits,
    values_by_hand,
    wire_keys,
)

OWN = ("replispec.runtime.rocketmq.rules", "replispec.wire")


def test_an_import_of_a_room_above_is_found_at_any_depth() -> None:
    source = "from replispec.wire import rocketmq\n\ndef late():\n    import replispec.replay.judges.judge\n"
    assert list(forbidden_imports(source, OWN, ())) == [
        "line 4: imports replispec.replay.judges.judge, a room it may not know"
    ]


def test_a_room_whose_name_only_begins_alike_is_another_room() -> None:
    assert len(list(forbidden_imports("import replispec.wired", OWN, ()))) == 1


def test_a_banned_module_is_found_in_both_forms_of_import() -> None:
    source = "import os.path\nfrom time import monotonic\nfrom timeit import timeit\nfrom . import secret\n"
    assert list(forbidden_imports(source, OWN, ("os", "time"))) == [
        "line 1: imports os.path, which does not belong here",
        "line 2: imports time.monotonic, which does not belong here",
        "line 4: relative import ..secret",
    ]


def test_a_call_of_a_banned_builtin_is_found_and_a_method_of_that_name_is_not() -> None:
    assert list(called_builtins("open('x')\narchive.open('x')\n", ("open",))) == ["line 1: calls open()"]


def test_a_question_for_digits_is_found_and_one_for_letters_is_not() -> None:
    assert list(unbounded_digits("text.isalpha()\ntext.isdigit()\nmap(str.isdecimal, parts)\n")) == [
        "line 2: asks isdigit: use decimal_of",
        "line 3: asks isdecimal: use decimal_of",
    ]


def test_a_wire_key_is_found_as_a_literal_and_an_everyday_word_is_not() -> None:
    source = "fields['masterEpoch']\nfields['group']\nfields['masterEpochs']\nmasterEpoch = 1\n"
    assert list(wire_keys(source, {"masterEpoch", "group"})) == [
        "line 1: spells the wire key 'masterEpoch': use the generated constant"
    ]


def test_a_request_code_is_found_and_a_small_number_or_a_truth_value_is_not() -> None:
    assert list(
        request_codes("a = 1001\nb = 10\nc = True\nd = 1001.0\ne = x[:200]\n", {1, 10, 200, 1001})
    ) == ["line 1: writes the request code 1001: use RequestCode"]


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("OPEN_END: Final = 2**63 - 1", "OPEN_END"),
        ("PERIOD_MS = 10_000", "PERIOD_MS"),
        ("BYTES_MAX: Final = 32_767", "BYTES_MAX"),
        ("BYTES_MAX: Final = (1 << 15) - 1", "BYTES_MAX"),
        ('SEPARATOR: Final = "@"', "SEPARATOR"),
        ('KINDS: Final = ("", "TAG")', "KINDS"),
        ('NAME: Final = re.compile("[a-z]{1,127}")', "NAME"),
        ("def ask(self, *, wait_ms: int = 3_000) -> None: ...", "wait_ms"),
        ("def ask(self, wait_ms: int = 3_000, other: int = 1) -> None: ...", "wait_ms"),
    ],
)
def test_a_value_of_a_protocol_is_found_in_a_role(line: str, name: str) -> None:
    (complaint,) = values_by_hand(line)
    assert complaint.startswith(f"line 1: keeps {name} = ")


def test_a_bound_and_a_word_of_ours_are_left_to_a_role() -> None:
    source = (
        'WAITING_MAX: Final = 100_000\nBYTES_MAX = 256 * 1024\nLISTENER = "main"\nLOG = "log.sqlite"\n'
        '__all__ = ["Answer"]\nT = TypeVar("T")\nSIZE = len("abc")\nnow_ms = None\n'
        "def ask(self, wait_ms: int = OTHER, at_ms: int = 0) -> None: ...\n"
    )
    assert list(values_by_hand(source)) == []


def test_a_function_of_seventy_lines_passes_and_one_more_does_not() -> None:
    assert list(sizes("def short():\n" + "    pass\n" * 69)) == []
    assert list(sizes("def long():\n" + "    pass\n" * 70)) == ["line 1: long has 71 lines, at most 70"]


def test_a_file_of_five_hundred_lines_passes_and_one_more_does_not() -> None:
    assert list(sizes("pass\n" * 500)) == []
    assert list(sizes("pass\n" * 501)) == ["501 lines, at most 500"]


def test_a_long_line_is_found() -> None:
    assert list(long_lines("x" * 110 + "\n" + "x" * 111)) == ["line 2: 111 characters, at most 110"]


def test_links_to_files_are_found_and_links_to_sites_are_not() -> None:
    source = "[a](docs/a.md#part) and [b](https://b.example/b)\n[c](#here) [d](../d.md)\n"
    assert list(local_links(source)) == [(1, "docs/a.md"), (2, "../d.md")]


def test_a_key_that_yaml_reads_as_a_boolean_is_found_at_any_depth() -> None:
    source = 'edges:\n  - {from: A, on: b}\n  - "on": quoted\n    event: off\n'
    assert list(boolean_keys(source)) == ["line 2: the key 'on' is read as a boolean"]
