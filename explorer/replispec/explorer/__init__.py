"""Explores systems: every order in which messages, timers and faults may come, within bounds that are said.

`composed` holds the instances of a system and takes them one event further, on the very bytes that they send;
what it has computed once it never computes again (`tables`). `search` steps whole populations of states by
columns of numbers, `promises` judges them, `story` tells the shortest way to a broken promise.
"""
