"""The command `replispec`. It may import every room, and does so only when a command runs.

In come arguments; out come text or JSON on standard output, progress and faults on standard error, and an
exit code: 0 nothing violated or lost, 1 violated, lost or failed, 2 unusable input. `main.py` holds the group
of commands and what all share about errors and pipes; each command has a module of its name: `decode`,
`replay`, `conformance`, `explain`, `spec`, and `roles` for controller, name server, broker and learner.
A command reads arguments, calls one function of a room, and words what comes back: `*_text` modules do the
wording. `family.py` is what `decode` asks of a family of protocols.
"""
