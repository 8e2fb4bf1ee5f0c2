"""A file that somebody writes is read, or refused in one line; nothing in it ends the process."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from replispec.runtime.documents import yaml_seam
from replispec.runtime.documents.yaml_seam import NotYamlError, read

LOADERS = [yaml.CSafeLoader, yaml.SafeLoader]


@pytest.fixture(params=LOADERS, autouse=True)
def _each_loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_seam, "_LOADER", request.param)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("a: [1, 0x10, 2026-11-26, 1e3, .inf]", {"a": ["1", "0x10", "2026-11-26", "1e3", ".inf"]}),
        ("{a: yes, b: 'yes', c: Off, d: ~, e: , yes: true}",
         {"a": True, "b": "yes", "c": False, "d": None, "e": None, "yes": True}),
        ("a: |\n  yes\nb: [{c: []}, {}]", {"a": "yes\n", "b": [{"c": []}, {}]}),
        ("--- x\n...\n", "x"),
    ],
)  # fmt: skip
def test_what_is_plain_is_read(text: str, value: object) -> None:
    assert read(text) == value


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: 1\nb: !!int ''", "line 2: a tag"),
        ("a: !!bool maybe", "line 1: a tag"),
        ("a: !!timestamp x", "line 1: a tag"),
        ("!!set {a}", "line 1: a tag"),
        ("- !x [a]", "line 1: a tag"),
        ("a: &b c", "line 1: an anchor"),
        ("a: &b [c]", "line 1: an anchor"),
        ("a: *b", "line 1: an alias"),
        ("a: 1\nb: 2\na: 3", "line 3: a key stands twice"),
        ("a: 1\n'a': 3", "line 2: a key stands twice"),
        ("b: [{a: 1, c: 2,\n a: 1}]", "line 2: a key stands twice"),
        ("? [a]\n: b", "line 1: a key is no text"),
        ("? {a: b}\n: b", "line 1: a key is no text"),
        ("a: 1\n---\nb: 2", "more than one document"),
        ("[" * 5_000, "line 1: nested too deep"),
        ("a: [", "no YAML, line 1"),
        ("a: @b", "no YAML, line 1"),
        ("a: \x00", "no YAML"),
        ("a: \ud800", "no YAML"),
    ],
)  # fmt: skip
def test_what_is_not_plain_is_refused_in_one_line(text: str, told: str) -> None:
    with pytest.raises(NotYamlError) as failed:
        read(text)
    assert str(failed.value).startswith(told)
    assert "\n" not in str(failed.value)


@pytest.mark.parametrize("escape", [r"\uD800", r"\uDFFF", r"\UFFFFFFFF", r"\U00110000"])
@pytest.mark.parametrize("text", ['a: "x%sy"', '"x%sy": a'])
def test_a_text_that_utf_8_cannot_hold_is_refused(text: str, escape: str) -> None:
    with pytest.raises(NotYamlError):
        read(text % escape)


PIECES = st.sampled_from(
    [
        *("a", ": ", "\n", "  ", "- ", "[", "]", "{", "}", ", ", "? ", "''", '"', "'", "|\n"),
        *(">", "#", "~", "@"),
        *("!!int ", "!!bool ", "!<x> ", "!!", "&b ", "*b", "<<: ", "--- ", "...", "%YAML 1", "%TAG ! x"),
        *(r"\uD800", r"\UFFFFFFFF", r"\x", "\t", "\ufeff"),
    ]
)


@given(st.lists(PIECES, max_size=24).map("".join) | st.text(max_size=40))
def test_whatever_a_text_holds_it_is_read_or_refused(text: str) -> None:
    for loader in LOADERS:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(yaml_seam, "_LOADER", loader)
            with suppress(NotYamlError):
                json.dumps(read(text), ensure_ascii=False).encode()


def test_the_parser_in_c_is_used_where_the_library_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert yaml_seam._LOADER is yaml.CSafeLoader
