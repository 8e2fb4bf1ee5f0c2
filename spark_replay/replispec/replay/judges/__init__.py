"""Invariants of the specification, evaluated over events; findings and losses come out."""
