"""Runs as one self-contained page."""

from __future__ import annotations

from collections.abc import Sequence

from replispec.conformance.results import RunResult


def html_page(runs: Sequence[RunResult]) -> str:
    """A page of all runs."""
    names = ", ".join(run.target for run in runs)
    return f"<!doctype html><title>{names}</title>"
