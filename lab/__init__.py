"""Whole clusters of real processes on loopback, ours and others: for demo, interop, suite, benchmarks.

`subjects` says what can be started, by name and release. `cluster` starts it in a folder, on free ports, and
ends whatever it started; `poll` is the one loop that waits. What is played on it: `demo`, `interop`, `kills`,
`conformance`. All of it is told of a family of protocols by one object (`family`, found by `families`): who
there is, how they are configured, what is asked, waited for and demanded.
Everything runs from the checkout, as `python -m lab.demo`.
"""
