"""Python modules: codecs, numbers, machines, bindings, rules, invariants and parameters."""
