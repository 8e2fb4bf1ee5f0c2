"""The compiler: the specification in, everything below generated/ out.

In come the files of `spec/`: messages as `.proto`, everything else as YAML. Out comes a mapping from paths
to bytes: Python modules, Markdown pages, JSON data, a Wireshark dissector. It is a pure function of the
bytes that came in: no dates, no paths of a machine, sorted, passed through the formatter.

    read       files -> model; each key and name that is not known is refused at its own line
    language   expressions of guards, rules and bindings: parser, types, their text in Python or English
    model      what was read, as plain dataclasses: messages, machines, bindings, rules, invariants, clauses
    check      what makes the model whole: names are unique, states reached, choices decided, clauses cited
    emit       model -> text, one folder a target; `emit/python/tree.py` is the tree that Python is built from
    evolution  two specifications compared: what a change breaks, and for whom

Words: a *family* is one protocol with its folders in `spec/`. A *machine* is a table of states, events and
edges; an edge has a guard, assigns variables and names effects. A *binding* says which message, and which
of its fields, an event or an answer is on the wire. A *fault* is what is wrong with a specification; all are
reported at once, each with place and advice.

Begin with `generate.generate`, which runs the stages in order; `family.compile_family` does it for the YAML
of one family. `model/machine.py` beside a file of `spec/statemachines` shows what a machine becomes.
"""
