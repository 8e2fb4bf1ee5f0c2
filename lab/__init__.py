"""Whole clusters of real processes on loopback, ours and others: for demo, interop, suite, benchmarks.

`subjects` says what can be started, by name and release. `cluster` starts it in a folder, on free ports, and
ends whatever it started. `settings` are the configurations, `questions` and `waiting` what is asked and
waited for, `poll` the one loop that waits. What is played on it: `demo`, `interop`, `kills`, `conformance`.
Everything runs from the checkout, as `python -m lab.demo`.
"""
