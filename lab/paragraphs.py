"""The paragraphs of a document and their hashes, compared with what a coverage.yaml records.

python -m lab.paragraphs TEXT [--of DOCUMENT --in COVERAGE]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from replispec.compiler.read.coverage import digest, documents, paragraph_hash, paragraphs
from replispec.compiler.read.yaml_source import read_yaml


def differences(recorded: Sequence[str], text: str) -> Iterator[str]:
    """What parts the recorded hashes from those of a text, one line a paragraph; nothing when equal."""
    hashes = [paragraph_hash(each) for each in paragraphs(text)]
    for number in range(1, max(len(hashes), len(recorded)) + 1):
        ours = recorded[number - 1] if number <= len(recorded) else "none"
        theirs = hashes[number - 1] if number <= len(hashes) else "none"
        if ours != theirs:
            yield f"paragraph {number}: recorded {ours}, in the text {theirs}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line: print the hashes of a text, or compare it with what is recorded (1 when it differs)."""
    parser = argparse.ArgumentParser(description="Paragraphs of a document and their hashes.")
    parser.add_argument("text", type=Path, help="the document as text in UTF-8")
    parser.add_argument("--of", metavar="DOCUMENT", help="compare with this document of coverage.yaml")
    parser.add_argument("--in", dest="coverage", type=Path, metavar="COVERAGE", help="the coverage.yaml")
    options = parser.parse_args(arguments)
    text = options.text.read_text("utf-8")
    hashes = [paragraph_hash(each) for each in paragraphs(text)]
    if options.coverage is None:
        lines = [f"{number} {each}" for number, each in enumerate(hashes, 1)]
        sys.stdout.write("\n".join([*lines, f"paragraphs: {len(hashes)}", f"digest: {digest(hashes)}", ""]))
        return 0
    tree = read_yaml(options.coverage, options.coverage.parent)
    recorded = [
        paragraph.text("hash")
        for document in documents(tree)
        if document.text("document") == options.of
        for paragraph in document.listed("coverage")
    ]
    lines = list(differences(recorded, text))
    sys.stdout.write("\n".join([*lines, f"{len(recorded)} recorded, {len(lines)} differ", ""]))
    return 1 if lines else 0


if __name__ == "__main__":
    raise SystemExit(main())
