"""`python -m replispec.handbook`: make the site of a checkout."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from replispec.compiler.model.message import SpecificationError
from replispec.conformance.model import CaseError
from replispec.handbook.book import Checkout, make_book
from replispec.handbook.checking import check
from replispec.handbook.lessons import LessonError
from replispec.handbook.printing import PrintingError, add_files, print_book

COMPLAINTS_SHOWN = 20


def main(arguments: list[str] | None = None) -> int:
    """Make the site, follow its links, and say where it is."""
    parser = argparse.ArgumentParser(description="Make pages for people of a checkout's specification.")
    parser.add_argument("--root", type=Path, default=Path("."), help="the checkout")
    parser.add_argument("--out", type=Path, default=Path("out/site"), help="folder to write")
    options = parser.parse_args(arguments)
    checkout = Checkout(options.root)
    try:
        book = make_book(checkout)
        with tempfile.TemporaryDirectory() as work:
            print_book(book, options.out, Path(work), workers=os.cpu_count() or 1)
    except (SpecificationError, CaseError, LessonError, PrintingError) as refusal:
        sys.stderr.write("".join(f"replispec: {line}\n" for line in str(refusal).splitlines()))
        return 2
    add_files(book, checkout.root, options.out)
    found = check(options.out)
    for complaint in found.complaints[:COMPLAINTS_SHOWN]:
        sys.stderr.write(f"replispec: {complaint}\n")
    sys.stdout.write(
        f"{found.pages} pages, {found.links} links within the site, {len(found.complaints)} of them broken\n"
        f"Open {options.out / 'index.html'} in a browser, or serve the folder:\n"
        f"  python -m http.server --bind 127.0.0.1 --directory {options.out}\n"
    )
    return 1 if found.complaints else 0


if __name__ == "__main__":
    raise SystemExit(main())
