"""The small dialect of YAML that the specification is written in."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replispec.compiler.model.message import SpecificationError
from replispec.compiler.read.yaml_source import Scalar, Tree, parse_yaml, read_yaml


def tree(folder: Path, text: str) -> Tree:
    (folder / "x.yaml").write_text(text, "utf-8")
    return read_yaml(folder / "x.yaml", folder)


def test_values_keep_their_lines_and_their_writing(tmp_path: Path) -> None:
    found = tree(tmp_path, "a: 1\nb:\n  c: true\n  d: 'true'\ne: [x, 007]\nf:\n")
    assert found.items["a"] == Scalar(found.keys["a"], 1, "1")
    assert str(found.tree("b").place_of("d")) == "x.yaml:4"
    assert found.tree("b").flag("c") is True
    assert found.tree("b").text("d") == "true"
    assert found.texts("e") == ("x", "007")
    assert found.texts("a") == ("1",)
    assert found.text("missing", "else") == "else"
    assert isinstance(found.items["f"], Scalar)
    assert found.items["f"].value is None


def test_a_folded_text_is_one_line(tmp_path: Path) -> None:
    assert tree(tmp_path, "a: >-\n  one\n  two\n").text("a") == "one two"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- a\n", "x.yaml:1: the file is no mapping. start with a key"),
        ("", "x.yaml:1: the file is no mapping"),
        ("a: [1\n", "x.yaml:2: this is no YAML"),
        ("a: 1\na: 2\n", "x.yaml:2: the key 'a' stands twice. remove one"),
        ("a: &x 1\n", "x.yaml:1: anchors and aliases are not in the language. write it out"),
        ("a: &x {}\nb: *x\n", "x.yaml:1: anchors and aliases"),
        ("a: yes\n", "x.yaml:1: YAML reads 'yes' as a truth value. write true or false"),
        ("On: 1\n", "x.yaml:1: YAML reads the key 'On' as a truth value"),
        ("? [a]\n: 1\n", "x.yaml:1: a key is not a text. write key: value"),
    ],
)
def test_what_the_dialect_does_not_have_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SpecificationError) as caught:
        tree(tmp_path, text)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("text", "ask", "said"),
    [
        ("a: {}\n", lambda found: found.text("a"), "x.yaml:1: 'a' is missing or not a text. write a: TEXT"),
        ("b: 1\n", lambda found: found.text("a"), "x.yaml:1: 'a' is missing or not a text"),
        ("a: 1\n", lambda found: found.flag("a"), "x.yaml:1: 'a' is no truth value. write true or false"),
        ("a: 1\n", lambda found: found.tree("a"), "x.yaml:1: 'a' is not a mapping. write a: {name: value}"),
        ("a: 1\n", lambda found: found.listed("a"), "x.yaml:1: 'a' is not a list of mappings"),
        ("a: []\n", lambda found: found.listed("a"), "x.yaml:1: 'a' is not a list of mappings"),
        ("a: [{}]\n", lambda found: found.texts("a"), "x.yaml:1: 'a' is neither a text nor a list of texts"),
        ("b: 1\n", lambda found: found.only("a"), "x.yaml:1: unknown option 'b'. use one of: a"),
    ],
)
def test_a_value_of_another_kind_is_refused(tmp_path: Path, text: str, ask: object, said: str) -> None:
    assert callable(ask)
    with pytest.raises(SpecificationError) as caught:
        ask(tree(tmp_path, text))
    assert str(caught.value).startswith(said)


def test_a_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_bytes(b"a: \xff\n")
    with pytest.raises(SpecificationError, match=r"^x\.yaml: the file is not UTF-8"):
        read_yaml(tmp_path / "x.yaml", tmp_path)


@given(st.one_of(st.text(max_size=60), st.text("ab:-[]{}&*!|>'\"#,? \n", max_size=60)))
def test_any_text_is_a_mapping_or_refused(text: str) -> None:
    try:
        assert isinstance(parse_yaml(text, "x.yaml"), Tree)
    except SpecificationError as error:
        place = error.place
    else:
        place = "x.yaml"
    assert place.startswith("x.yaml")


def test_deep_nesting_is_refused_not_followed() -> None:
    for text in ("a: " + "[" * 60_000, "a: " + "[" * 60_000 + "]" * 60_000, "{a: " * 60_000):
        with pytest.raises(SpecificationError, match=r"^x\.yaml:1: this is nested more than 100 deep"):
            parse_yaml(text, "x.yaml")
