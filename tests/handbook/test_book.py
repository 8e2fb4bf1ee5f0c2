"""Every thing of the specification has its page, and what belongs together is linked both ways."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from replispec.compiler.generate import generate, write
from replispec.handbook.book import Book, Checkout, make_book
from replispec.handbook.documents import Reader
from replispec.handbook.knowledge import Knowledge, read_knowledge
from replispec.handbook.places import anchor, bugs_of, case_place, document_page, edge_rows
from tests.handbook.shared import NAMES, ROOT, all_known, links, neighbours, places, whole_book

every_family = pytest.mark.parametrize("known", NAMES, indirect=True)


@pytest.fixture
def known(request: pytest.FixtureRequest) -> Knowledge:
    """What is known of the family that a test names."""
    return all_known()[request.param]


@every_family
def test_each_clause_machine_message_rule_and_invariant_is_a_page(known: Knowledge) -> None:
    parts = {
        "clauses": known.clauses,
        "machines": known.spec.machines,
        "messages": known.model.messages,
        "rules": known.spec.rules,
        "invariants": known.spec.invariants,
    }
    wanted = {f"{known.name}/{kind}/{name}" for kind, names in parts.items() for name in names}
    assert len(wanted) > 25
    assert wanted - set(whole_book().pages) == set()


@every_family
def test_a_clause_and_what_checks_it_lead_to_each_other(known: Knowledge) -> None:
    root, near = known.name, neighbours()
    seen = set()
    for clause, uses in known.uses.items():
        page = f"{root}/clauses/{clause}"
        for use in uses:
            kind, _, what = use.partition(" ")
            owner = what.partition(".")[0]
            target = {
                "message": f"{root}/messages/{owner}",
                "field": f"{root}/messages/{owner}",
                "value": f"{root}/numbers",
                "edge": f"{root}/machines/{what.partition(':')[0]}",
                "guard": f"{root}/machines/{owner}",
                "rule": f"{root}/rules/{what}",
                "invariant": f"{root}/invariants/{what}",
                "example:": f"{root}/examples",
            }[kind]
            assert target in near[page], use
            assert page in near[target], use
            seen.add(kind)
    assert {"message", "edge"} <= seen


@every_family
def test_each_edge_of_a_machine_is_a_line_that_its_clauses_lead_to(known: Knowledge) -> None:
    book = whole_book()
    for name, machine in known.spec.machines.items():
        page = f"{known.name}/machines/{name}"
        text = book.pages[page].text
        for number, rows in enumerate(edge_rows(machine)):
            for row in rows:
                assert text.count(f'<a id="{row.anchor}"></a>') == 1
                line = next(line for line in text.split("\n") if f'id="{row.anchor}"' in line)
                assert f"`{row.state}` | `{row.event}`" in line
                for clause in row.edge.clauses if row.edge else ():
                    assert f"{clause}.html" in line
                    to = (f"{page}.html", row.anchor)
                    assert to in set(links(book, f"{known.name}/clauses/{clause}"))
                assert number or f'href="#{row.anchor}"' in text, "the picture leads to it"
        for state in machine.states:
            assert text.count(f'<a id="{anchor("state", state)}"></a>') == 1
            assert f'href="#{anchor("state", state)}"' in text


@every_family
def test_each_paragraph_leads_to_its_clauses_and_is_led_to_by_them(known: Knowledge) -> None:
    book = whole_book()
    for coverage in known.coverages:
        page = document_page(known, coverage.document)
        for each in coverage.paragraphs:
            assert f'<a id="{anchor("p", each.number)}"></a>' in book.pages[page].text
            for clause in each.clauses:
                assert f"{known.name}/clauses/{clause}" in neighbours()[page]
                back = set(links(book, f"{known.name}/clauses/{clause}"))
                assert (f"{page}.html", anchor("p", each.number)) in back


@every_family
def test_each_case_its_clause_its_messages_and_its_defects_lead_to_each_other(known: Knowledge) -> None:
    book, near = whole_book(), neighbours()
    sending = 0
    for case in known.cases:
        page, place = case_place(known, case.id)
        clause = f"{known.name}/clauses/{case.clause}"
        assert (f"{page}.html", place) in set(links(book, clause))
        assert clause in near[page]
        assert f"({place})=" in book.pages[page].text
        for bug in case.bugs:
            assert (f"{known.name}/defects.html", anchor("defect", bug)) in set(links(book, page))
            assert (f"{page}.html", place) in set(links(book, f"{known.name}/defects"))
        for message in near[page]:
            if message.startswith(f"{known.name}/messages/"):
                assert page in near[message]
                sending += 1
    assert sending > 20 or not known.cases
    for bug in bugs_of(known):
        assert f"({anchor('defect', bug)})=" in book.pages[f"{known.name}/defects"].text


@every_family
def test_each_known_divergence_is_told_among_the_differences_of_its_release(known: Knowledge) -> None:
    book = whole_book()
    page = f"{known.name}/releases"
    for clause in known.clauses.values():
        for release in clause.divergence:
            assert f'<a id="{anchor(release, clause.id)}"></a>' in book.pages[page].text
            assert (f"{page}.html", anchor(release, clause.id)) in set(
                links(book, f"{known.name}/clauses/{clause.id}")
            )
    told = neighbours()[page]
    assert {
        f"{known.name}/machines/{each.name}" for each in known.spec.machines.values() if each.overlays
    } <= told
    assert {
        f"{known.name}/messages/{each.name}" for each in known.model.messages.values() if each.versions
    } <= told
    assert [path for path in told if page not in neighbours()[path]] == []


def test_every_document_of_the_checkout_and_of_the_compiler_is_there() -> None:
    book = whole_book()
    documents = [path.relative_to(ROOT).with_suffix("").as_posix() for path in ROOT.glob("docs/**/*.md")]
    assert len(documents) > 50
    shown = {path.lower().replace("/readme", "/index") for path in documents}
    compiled = ("numbers", "parameters", "constants", "examples", "compliance", "wireshark")
    shown |= {f"rocketmq/{name}" for name in compiled} | {"adapter", "event", "trace"}
    assert shown - set(book.pages) == set()


def test_every_link_leads_to_a_page_or_a_file() -> None:
    """Anchors are followed in the HTML (test_site.py)."""
    book = whole_book()
    there = {f"{path}.html" for path in (*book.pages, *book.ready)} | {
        f"files/{path}.txt" for path in book.files
    }
    every = [(path, to) for path in book.pages for to, _ in links(book, path)]
    assert len(every) > 8_000
    assert [(path, to) for path, to in every if to not in there] == []


def _linked(text: str) -> str:
    """A text of docs/ with what its names lead to."""
    reader = Reader(ROOT, places(), {})
    return re.sub(r"\(ref:([^)]*)\)", r"(site:../\1.html)", reader.referring(text, "docs/x.md", "docs/x"))


def test_a_name_in_a_document_leads_to_its_page_and_code_stays_code() -> None:
    book = whole_book()
    lesson = book.pages["docs/teaching/rip-44-six-truncations"].text
    assert "[RIP44-TRUNC-1](site:../../rocketmq/clauses/RIP44-TRUNC-1.html)" in lesson
    assert "[`ha_replica`](site:../rocketmq/machines/ha_replica.html)" in _linked("See `ha_replica`.")
    assert (
        _linked("`confirm_offset` is a variable and a rule.") == "`confirm_offset` is a variable and a rule."
    )
    assert _linked("# RIP44-ALTER-1") == "# RIP44-ALTER-1"
    cases = book.pages["docs/writing-a-case"].text
    inside = cases.split("```")[1::2]
    assert inside
    assert not any("site:" in fence for fence in inside)


def _checkout(folder: Path) -> Path:
    """A checkout of links only: nothing is copied."""
    for name in ("spec", "conformance"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "generated" / "docs").mkdir(parents=True)
    for path in (ROOT / "generated" / "docs").iterdir():
        if path.name != "kafka":
            (folder / "generated" / "docs" / path.name).symlink_to(path)
    return folder


def _copied(source: Path, target: Path) -> None:
    for path in source.rglob("*.md"):
        place = target / path.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(path.read_bytes())


def test_pages_that_others_make_of_a_family_are_taken_in(tmp_path: Path) -> None:
    checkout = _checkout(tmp_path)
    family = checkout / "generated" / "docs" / "kafka"
    _copied(ROOT / "generated" / "docs" / "kafka", family)
    (family / "systems").mkdir(exist_ok=True)
    (family / "systems" / "pair.md").write_text(
        "# A pair\n\nSee `ApacheLeaderAndIsrRequest` and KAFKA-COMMAND-1.\n"
    )
    (family / "systems" / "walk.html").write_text("<html><body>a walk</body></html>")
    book: Book = make_book(Checkout(checkout))
    assert book.pages["kafka/systems/pair"].title == "A pair"
    assert {f"kafka/systems/{name}.html" for name in ("pair", "walk")} <= {
        to for to, _ in links(book, "kafka/index")
    }
    assert ("kafka/messages/ApacheLeaderAndIsrRequest.html", "") in set(links(book, "kafka/systems/pair"))
    assert ("kafka/systems/pair.html", "") in set(links(book, "kafka/clauses/KAFKA-COMMAND-1"))
    assert book.ready["kafka/systems/walk"] == family / "systems" / "walk.html"


def test_a_family_that_is_added_appears_by_itself(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "tests" / "toy_family" / "spec", tmp_path / "spec")
    options = "spec/proto/replispec/options"
    shutil.copytree(ROOT / options, tmp_path / options)
    write(generate(tmp_path / "spec"), tmp_path / "generated")
    book = make_book(Checkout(tmp_path))
    (known,) = read_knowledge(tmp_path / "spec", tmp_path / "cases")
    for kind, parts in (
        ("clauses", known.clauses),
        ("machines", known.spec.machines),
        ("messages", known.model.messages),
        ("rules", known.spec.rules),
    ):
        assert parts
        for part in parts:
            assert f"toy/{kind}/{part}" in book.pages
            assert (f"toy/{kind}/{part}.html", "") in set(links(book, f"toy/{kind}/index"))
    assert ("toy/index.html", "") in set(links(book, "index"))
    assert all("<svg" in book.pages[f"toy/machines/{name}"].text for name in known.spec.machines)
