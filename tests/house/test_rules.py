"""The rules themselves: each finds the offence it is for, and lets the neighbouring innocent pass."""

from tests.house.rules import (
    boolean_keys,
    called_builtins,
    forbidden_imports,
    local_links,
    long_lines,
    request_codes,
    sizes,
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


def test_a_wire_key_is_found_as_a_literal_and_an_everyday_word_is_not() -> None:
    source = "fields['masterEpoch']\nfields['group']\nfields['masterEpochs']\nmasterEpoch = 1\n"
    assert list(wire_keys(source, {"masterEpoch", "group"})) == [
        "line 1: spells the wire key 'masterEpoch': use the generated constant"
    ]


def test_a_request_code_is_found_and_a_small_number_or_a_truth_value_is_not() -> None:
    assert list(
        request_codes("a = 1001\nb = 10\nc = True\nd = 1001.0\ne = x[:200]\n", {1, 10, 200, 1001})
    ) == ["line 1: writes the request code 1001: use RequestCode"]


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
