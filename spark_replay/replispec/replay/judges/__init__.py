"""Invariants of the specification, evaluated over events; findings and losses come out.

`streams` judges lists event by event and tables by columns; `parts` are findings that add up in any order.
"""
