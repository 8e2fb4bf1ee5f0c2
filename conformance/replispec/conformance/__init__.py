"""A suite that judges any implementation of a specified protocol on nothing but its bytes.

In come case files and the addresses of a running implementation, the *subject*; out come verdicts, as text,
HTML, JUnit and JSON. A case names the clause that it checks and every outcome that the clause allows. The
engine knows no rule: what is right stands in the cases, and numbers, names and codecs in what is generated.

    sources, steps, cases   a case file -> a checked `model.Case`; each fault at its own line
    planning, run, probe    which cases, against which subject, side by side or alone
    play, wires, encoding   one case: its connections, what is sent
    received, judging       what came back, and whether it is one of the allowed outcomes
    values, vocabulary      variables of a case, names of the protocol
    expectations, results   known failures of an implementation; what a run found
    report_*, compliance    the same for people and for machines
    vectors, vector_*       clauses, machines and golden bytes as files, for suites in other languages
    family, FAMILY          what the engine asks of a family of protocols

Words: an *outcome* is one way in which a subject may react. A *symptom* is the nearest difference from an
allowed outcome. A *target* is an implementation that has known failures on file. A *profile* is a part of
a protocol that a subject may lack.

Begin with a file of `conformance/cases` and docs/writing-a-case.md, then `model.py`, `play.py`, `judging.py`.
"""
