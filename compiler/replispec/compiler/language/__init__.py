"""The language of expressions: what guards, assignments, rules and bindings are written in.

`expressions` parses a text into a syntax tree, `check` finds its type and refuses names and values that do
not fit, `text` writes a tree as Python, as English, as the language itself, or with one mutation.
"""
