"""YAML of case files: every value knows its line; what the dialect leaves out is refused with its line."""

from pathlib import Path

import pytest

from replispec.conformance.model import CaseError, Matcher
from replispec.conformance.sources import Item, read


def _read(folder: Path, text: str | bytes) -> Item:
    path = folder / "some.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read(path, "kind/some.yaml")


def test_values_are_texts_numbers_truths_lists_and_mappings(tmp_path: Path) -> None:
    text = 'a: 1\nb: -20\nc: 0.5\nd: true\ne: null\nf: word\ng: "1"\nh: [1, x]\ni: {j: 007}\nk: 5.1.1\nl:\n'
    assert _read(tmp_path, text).plain() == {
        "a": 1,
        "b": -20,
        "c": 0.5,
        "d": True,
        "e": None,
        "f": "word",
        "g": "1",
        "h": [1, "x"],
        "i": {"j": "007"},
        "k": "5.1.1",
        "l": None,
    }


def test_words_that_only_old_yaml_takes_for_truths_stay_words(tmp_path: Path) -> None:
    assert _read(tmp_path, "{on: yes, off: no}").plain() == {"on": "yes", "off": "no"}


def test_tags_become_matchers_at_any_depth(tmp_path: Path) -> None:
    assert _read(tmp_path, "a: [!above 3, {b: !set [1]}]\nc: !present").plain() == {
        "a": [Matcher("above", 3), {"b": Matcher("set", [1])}],
        "c": Matcher("present", None),
    }


def test_every_value_knows_its_line(tmp_path: Path) -> None:
    item = _read(tmp_path, "a: 1\nb:\n  - x\n  - y\n")
    assert str(item.mapping("it")["b"].sequence("it")[1].place) == "kind/some.yaml:4"


@pytest.mark.parametrize(
    ("text", "where", "why"),
    [
        ("", 1, "the file is empty"),
        ("# nothing\n", 1, "the file is empty"),
        ("a: 1\nb: [1,\nc: 2\n", 4, "no YAML"),
        ("a: 1\n\tb: 2\n", 2, "no YAML"),
        ("a: 1\n---\nb: 2\n", 2, "no YAML"),
        (b"a: \xff\n", 1, "no YAML"),
        ("a: \x00\n", 1, "no YAML"),
        ("a: 1\nb: 2\na: 3\n", 3, "the key 'a' stands twice"),
        ("a:\n  b: 1\n  b: 1\n", 3, "the key 'b' stands twice"),
        ("a: &x [1]\nb: *x\n", 1, "anchors are not used"),
        ("a: 1\n? [1, 2]\n: 3\n", 2, "a key has to be one word"),
    ],
)
def test_what_is_not_of_the_dialect_is_refused_in_one_line(
    tmp_path: Path, text: str | bytes, where: int, why: str
) -> None:
    with pytest.raises(CaseError) as fault:
        _read(tmp_path, text)
    refusal = str(fault.value)
    assert refusal.startswith(f"kind/some.yaml:{where}: {why}")
    assert "\n" not in refusal


@pytest.mark.parametrize("text", ["[1]", "word", "!set {a: 1}"])
def test_only_a_mapping_without_a_tag_is_a_mapping(tmp_path: Path, text: str) -> None:
    with pytest.raises(CaseError, match=r"some\.yaml:1: it: a mapping is expected"):
        _read(tmp_path, text).mapping("it")


@pytest.mark.parametrize("text", ["{a: 1}", "word", "!set [1]"])
def test_only_a_list_without_a_tag_is_a_list(tmp_path: Path, text: str) -> None:
    with pytest.raises(CaseError, match=r"some\.yaml:1: it: a list is expected"):
        _read(tmp_path, text).sequence("it")


@pytest.mark.parametrize("depth", [1_000, 5_000])
def test_values_that_stand_too_deeply_within_values_are_refused_in_one_line(
    tmp_path: Path, depth: int
) -> None:
    with pytest.raises(CaseError) as fault:
        _read(tmp_path, "cases: " + "[" * depth + "]" * depth)
    assert str(fault.value) == "kind/some.yaml:1: values stand within values too deeply: 128 deep is the most"
