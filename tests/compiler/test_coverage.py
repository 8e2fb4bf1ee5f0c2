"""Coverage of documents by clauses, and the page that says what checks each clause."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lab import paragraphs as paragraphs_of
from replispec.compiler.family import compile_family
from replispec.compiler.model.message import SpecificationError
from replispec.compiler.read.clauses import read_clauses
from replispec.compiler.read.coverage import digest, paragraph_hash, paragraphs, read_coverage
from replispec.compiler.read.yaml_source import parse_yaml, read_yaml
from tests.compiler.small_family import small_model, write
from tests.compiler.specification import ROOT, SPEC

TEXT = """A title

A caller counts.
Nobody else does.
 \t
Half is half,
  rounded down.

"""
HASHES = [paragraph_hash(each) for each in paragraphs(TEXT)]
HALF = f'      - {{paragraph: 3, hash: "{HASHES[2]}", clauses: [SMALL-HALF-1]}}\n'
COVERAGE = f"""\
documents:
  - document: Test
    paragraphs: 3
    digest: {digest(HASHES)}
    coverage:
      - {{paragraph: 1, hash: "{HASHES[0]}", no_requirement: because it is a title}}
      - {{paragraph: 2, hash: "{HASHES[1]}", clauses: [SMALL-CALL-1, SMALL-NONE-1]}}
{HALF}"""
CLAUSES = """\
clauses:
  - id: SMALL-NONE-1
    requirement: Nobody shouts.
    basis: ours
    source: {document: Test}
    not_yet: nothing here listens
  - {id: SMALL-CASE-1, requirement: A caller rests., basis: ours, source: {document: Other}, case: wait}
  - {id: SMALL-BARE-1, requirement: A caller ends., basis: ours, source: {document: Other}}
"""


def compiled(folder: Path, text: str = COVERAGE, clauses: str = CLAUSES) -> dict[str, str]:
    """The small family with coverage of a document and three clauses that nothing cites."""
    write(folder)
    (folder / "clauses/small/coverage.yaml").write_text(text, "utf-8")
    (folder / "clauses/small/more.yaml").write_text(clauses, "utf-8")
    return {name: data.decode("utf-8") for name, data in compile_family(small_model(), folder).items()}


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the covered family becomes."""
    return compiled(tmp_path_factory.mktemp("covered"))


REFUSALS = [
    ("[SMALL-HALF-1]", "[SMALL-HALF-7]", "the clause 'SMALL-HALF-7' is not defined", "define it", 8),
    ("paragraph: 3,", "paragraph: 2,", "paragraph 2 stands twice", "coverage.yaml:7", 8),
    ("paragraph: 3,", "paragraph: 4,", "paragraph 3 is left out before 4", "every paragraph, in order", 8),
    (HALF, "", "Test has 3 paragraphs, but 2 are covered", "every paragraph, in order", 3),
    ("paragraphs: 3", "paragraphs: 4", "Test has 4 paragraphs, but 3 are covered", "in order", 3),
    ("paragraphs: 3", "paragraphs: few", "'few' is no number", "write paragraphs: 1 or more", 3),
    ("paragraph: 1,", "paragraph: 0,", "'0' is no number", "write paragraph: 1 or more", 6),
    (HASHES[1], "0123abcd", "the paragraphs of Test are not those of its digest", "compare with the text", 4),
    (HASHES[1], "0123ABCD", "'0123ABCD' is no hash", "8 hexadecimal digits", 7),
    (HASHES[1], HASHES[1][:7], f"'{HASHES[1][:7]}' is no hash", "8 hexadecimal digits", 7),
    (", clauses: [SMALL-HALF-1]", "", "paragraph 3 needs either clauses or no_requirement", "REASON", 8),
    ("clauses: [SMALL-HALF-1]", "clauses: []", "paragraph 3 needs either clauses", "REASON", 8),
    ("clauses: [SMALL-HALF-1]", "no_requirement: ~", "'no_requirement' is missing", "TEXT", 8),
    (
        "[SMALL-HALF-1]",
        "[SMALL-HALF-1], no_requirement: none",
        "paragraph 3 needs either clauses",
        "REASON",
        8,
    ),
    ("[SMALL-HALF-1]", "[SMALL-HALF-1, SMALL-HALF-1]", "paragraph 3 names a clause twice", "each once", 8),
    (
        "document: Test",
        "document: Test\n    section: 1",
        "unknown option 'section'",
        "document, paragraphs",
        3,
    ),
    (HALF, f"{HALF}{COVERAGE.removeprefix('documents:')[1:]}", "Test stands twice", "coverage.yaml:2", 9),
]


@pytest.mark.parametrize(
    ("old", "new", "fault", "advice", "line"), [pytest.param(*each, id=each[2]) for each in REFUSALS]
)
def test_coverage_with_a_fault_is_refused_at_its_line_with_advice(
    tmp_path: Path, old: str, new: str, fault: str, advice: str, line: int
) -> None:
    assert COVERAGE.count(old) == 1
    with pytest.raises(SpecificationError) as refusal:
        compiled(tmp_path, COVERAGE.replace(old, new))
    assert str(refusal.value).startswith(f"clauses/small/coverage.yaml:{line}: {fault}")
    assert advice in str(refusal.value).replace("\n", " ")


def test_a_clause_of_a_covered_document_that_no_paragraph_names_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        SpecificationError, match=r"more\.yaml:2: no paragraph of Test names the clause SMALL-NONE-1"
    ):
        compiled(tmp_path, COVERAGE.replace(", SMALL-NONE-1", ""))


def test_a_clause_of_another_document_needs_no_paragraph(output: dict[str, str]) -> None:
    assert "SMALL-CASE-1" not in COVERAGE
    assert "SMALL-CASE-1" in output["docs/small/compliance.md"]


def test_a_clause_has_a_case_or_a_reason_not_both(tmp_path: Path) -> None:
    with pytest.raises(SpecificationError, match="SMALL-CASE-1 has both a case and not_yet"):
        compiled(tmp_path, clauses=CLAUSES.replace("case: wait", "case: wait, not_yet: too hot"))


def test_a_reason_why_nothing_checks_a_clause_is_refused_once_something_does(tmp_path: Path) -> None:
    write(
        tmp_path,
        "requirement: Half is half., basis: both,",
        "requirement: Half is half., basis: both, not_yet: later,",
    )
    with pytest.raises(SpecificationError, match=r"SMALL-HALF-1 is checked: rule half\. drop its not_yet"):
        compile_family(small_model(), tmp_path)


PAGE = [
    "| SMALL | 5 | 0 | 1 | 1 | 1 | 0 | 1 | 0 | 1 | 3 |",
    "| all | 5 | 0 | 1 | 1 | 1 | 0 | 1 | 0 | 1 | 3 |",
    "- [SMALL-NONE-1](clauses.md#small-none-1): not yet: nothing here listens",
    "- [SMALL-CASE-1](clauses.md#small-case-1): waits for a case: wait",
    "- [SMALL-BARE-1](clauses.md#small-bare-1): nobody says why",
    (
        "| [SMALL-CALL-1](clauses.md#small-call-1) |  | [caller](machines/caller.md): BUSY on answer "
        "| [caller.fits](machines/caller.md) "
        "| [one-caller](invariants.md#one-caller), [numbers-grow](invariants.md#numbers-grow) |  |  |  |"
    ),
    "| [SMALL-HALF-1](clauses.md#small-half-1) |  |  |  |  |  | [half](rules.md#half) (2) |  |",
    "3 paragraphs, of which 2 demand something.",
    f"| because it is a title | 1 (`{HASHES[0]}`) |",
    f"| 3 | `{HASHES[2]}` | [SMALL-HALF-1](clauses.md#small-half-1) |",
]


@pytest.mark.parametrize("line", PAGE)
def test_the_page_of_compliance_holds_this_line(output: dict[str, str], line: str) -> None:
    assert line in output["docs/small/compliance.md"].splitlines()


def test_the_page_of_clauses_says_what_a_case_has_to_do_and_why_there_is_none(output: dict[str, str]) -> None:
    page = output["docs/small/clauses.md"].splitlines()
    assert "- A case has to show: wait" in page
    assert "- Checked nowhere: nothing here listens" in page


def test_paragraphs_are_parted_by_lines_without_text_and_stripped() -> None:
    assert paragraphs(TEXT) == (
        "A title",
        "A caller counts.\nNobody else does.",
        "Half is half,\n  rounded down.",
    )
    assert paragraphs("\n\n \n\n") == ()


def test_hashes_and_digest_are_those_of_sha_256() -> None:
    """The digests of "abc" are those of FIPS 180-2; that of two lines was computed with sha256sum."""
    assert paragraph_hash("abc") == "ba7816bf"
    assert digest(["abc"]) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert digest(["a", "b"]) == "7e18f737311b2dc3b2f269dd78396b0351f14fb66efa879f768cb23181883c78"


def test_the_tool_prints_what_a_new_document_starts_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text").write_text(TEXT, "utf-8")
    assert paragraphs_of.main([str(tmp_path / "text")]) == 0
    assert capsys.readouterr().out.splitlines() == [
        *(f"{number} {each}" for number, each in enumerate(HASHES, 1)),
        "paragraphs: 3",
        f"digest: {digest(HASHES)}",
    ]


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        (TEXT, 0, ["3 recorded, 0 differ"]),
        (TEXT + "More.", 1, [r"paragraph 4: recorded none, in the text [0-9a-f]{8}", "3 recorded, 1 differ"]),
        ("A title", 1, ["paragraph 2: recorded .*, in the text none", "paragraph 3: .*", "3 recorded, 2.*"]),
    ],
)
def test_the_tool_names_the_paragraphs_that_differ(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, status: int, said: list[str]
) -> None:
    (tmp_path / "text").write_text(text, "utf-8")
    (tmp_path / "coverage.yaml").write_text(COVERAGE, "utf-8")
    arguments = [str(tmp_path / "text"), "--of", "Test", "--in", str(tmp_path / "coverage.yaml")]
    assert paragraphs_of.main(arguments) == status
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(said)
    assert all(re.fullmatch(wanted, line) for wanted, line in zip(said, lines, strict=True))


def test_every_proposal_is_covered_whole() -> None:
    """Counts and digests were taken from the published texts."""
    folder = SPEC / "clauses/rocketmq"
    trees = {path.name: read_yaml(path, SPEC) for path in sorted(folder.glob("*.yaml"))}
    covering = {"coverage.yaml": trees.pop("coverage.yaml")}
    found = read_coverage(covering, read_clauses(trees))
    assert {
        each.document: (len(each.paragraphs), digest(item.hash for item in each.paragraphs)) for each in found
    } == {
        "RIP-44": (222, "9d7a74e660eabacda9a1859294762c9d2ce9bfb6167a53ebef94bf9c8408a8a4"),
        "Persistent unique BrokerId": (
            60,
            "e85bfe4e27861bca2b71a4e18a3e94239d61e573930f35ab4a2ec66f475c27c0",
        ),
        "RIP-21": (46, "a771d0cc868600933ec1fabb2ce0231415952142f8bb250e576e06bc2d1ee0d5"),
    }


def test_no_paragraph_of_the_proposals_can_be_left_out() -> None:
    text = (SPEC / "clauses/rocketmq/coverage.yaml").read_text("utf-8")
    line = next(line for line in text.splitlines() if "{paragraph: 113," in line)
    trees = {
        path.name: read_yaml(path, SPEC)
        for path in sorted((SPEC / "clauses/rocketmq").glob("*.yaml"))
        if path.name != "coverage.yaml"
    }
    cut = parse_yaml(text.replace(f"{line}\n", ""), "coverage.yaml")
    with pytest.raises(SpecificationError, match="paragraph 113 is left out before 114"):
        read_coverage({"coverage.yaml": cut}, read_clauses(trees))


def test_every_clause_that_nobody_checks_says_why() -> None:
    page = (ROOT / "generated/docs/rocketmq/compliance.md").read_text("utf-8")
    assert "waits for a case" in page
    assert "nobody says why" not in page
