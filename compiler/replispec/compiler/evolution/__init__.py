"""What changed between two specifications, and who is hurt by it.

A change of a protocol is harmless or not by what it does to a peer that still follows the old text, so
every change gets one of four kinds. It breaks the wire when bytes of one side are refused or misread by the
other; it changes behaviour when the bytes stay readable but something else is done, answered, waited for or
judged; it is compatible when whoever follows the old text notices nothing; or it is only words. `buf
breaking` and checkers of message generators do the same for messages alone.

    read      a folder -> the compiler's own model of every family
    walk      the model -> one tree of nodes: each object with its attributes, whatever its class
    compare   two trees -> differences: added, removed, renamed, changed, reordered
    judge     a difference -> its kind, and a sentence; an attribute that nobody judged changes behaviour
    touched   a difference -> clauses, cases, documents and expectations that speak of it
    revisions folders and git revisions; changelog: which breaks it names; report: all of it, as text and JSON

`walk` looks at dataclasses, not at names: a part of the model that is younger than this package is compared
like all others, and its changes count as changes of behaviour until a table (`wire`, `behaviour`) knows it.
"""
