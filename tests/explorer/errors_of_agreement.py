"""Errors of the agreement on one log, and the promise that finds each."""

from __future__ import annotations

from tests.explorer.errors import Error

TWO_ELECTIONS = ("--set", "silences=2", "--set", "lost=0")
OF_AGREEMENT = {
    "a vote ends with the process that gave it": Error(
        "statemachines/raft/member",
        "{type: int64 or none, durable: true, about: Whom it has voted for in this term.}",
        "{type: int64 or none, about: Whom it has voted for in this term.}",
        "group",
        TWO_ELECTIONS,
        "one_leader_per_term",
        0,
    ),
    "whoever has no vote left votes again": Error(
        "statemachines/raft/member",
        "(voted_for == none or voted_for == event.member)",
        "(voted_for == none or voted_for != id)",
        "group",
        (*TWO_ELECTIONS, "--set", "crashes=0"),
        "one_leader_per_term",
        0,
    ),
    "a leader's own copy is enough": Error(
        "statemachines/raft/member",
        "  persisted: 'rule.reached(voters, let.own)'",
        "  persisted: 'event.index'",
        "group",
        (*TWO_ELECTIONS, "--set", "crashes=0"),
        "who_leads_has_what_was_agreed_on",
        0,
    ),
    "a follower agrees beyond its log": Error(
        "statemachines/raft/member",
        "commit: 'max(commit, min(event.commit, let.end))'",
        "commit: 'max(commit, event.commit)'",
        "group",
        ("--set", "lost=0", "--set", "proposals=1", "--set", "crashes=0"),
        "a_member_knows_its_log",
        0,
    ),
    "what follows a hole is taken": Error(
        "statemachines/raft/member",
        "if: 'not rule.follows(event.log, event.prev_index, event.prev_term)'",
        "if: event.prev_index < 0",
        "group",
        ("--set", "lost=0", "--set", "crashes=0"),
        "a_member_knows_its_log",
        0,
    ),
}
