"""Errors of the agreement on one log, and the promise that finds each."""

from __future__ import annotations

from tests.explorer.errors import Error

TWO_ELECTIONS = ("--set", "silences=2", "--set", "lost=0", "--set", "crashes=0")
SNAPSHOT = ("--set", "snapshots=1", "--set", "lost=0", "--set", "crashes=0")
OF_AGREEMENT = {
    "whoever has voted votes again": Error(
        "statemachines/raft/member",
        "(voted_for == none or voted_for == event.member)",
        "(voted_for == none or voted_for != id)",
        "group",
        (*TWO_ELECTIONS, "--messages", "4"),
        "one_leader_per_term",
        12,
    ),
    "a leader's own copy is enough": Error(
        "statemachines/raft/member",
        "  persisted: 'rule.reached(voters, let.own)'",
        "  persisted: 'event.index'",
        "group",
        TWO_ELECTIONS,
        "who_leads_has_what_was_agreed_on",
        13,
        (("one_log_is_agreed_on", 13),),
    ),
    "what follows a hole is taken": Error(
        "statemachines/raft/member",
        "if: 'not rule.follows(event.log, event.prev_index, event.prev_term)'",
        "if: event.prev_index < 0",
        "group",
        ("--set", "lost=0", "--set", "crashes=0"),
        "a_member_knows_its_log",
        7,
        (("one_entry_one_past", 7),),
    ),
    "the members change before the last change is agreed on": Error(
        "statemachines/raft/member",
        "  may_change: commit >= term_start and members_index <= commit",
        "  may_change: commit >= term_start",
        "group",
        (*TWO_ELECTIONS, "--set", "changes=2", "--seconds", "900", "--states", "9000000"),
        "who_leads_has_what_was_agreed_on",
        17,
    ),
    "a snapshot is installed without its last index": Error(
        "statemachines/raft/member",
        "    assign: {last_index: event.index, last_term: event.last_term, commit: event.index}",
        "    assign: {last_term: event.last_term, commit: event.index}",
        "group",
        SNAPSHOT,
        "a_member_knows_its_log",
        11,
    ),
    "a snapshot is installed without its last term": Error(
        "statemachines/raft/member",
        "    assign: {last_index: event.index, last_term: event.last_term, commit: event.index}",
        "    assign: {last_index: event.index, commit: event.index}",
        "group",
        SNAPSHOT,
        "a_member_knows_its_log",
        11,
    ),
    "a leader answers before a majority has said that it leads": Error(
        "statemachines/raft/member",
        "if: 'rule.reached(voters, echoed) >= event.round'",
        "if: event.round > 0",
        "group",
        (*TWO_ELECTIONS, "--set", "reads=1", "--seconds", "900", "--states", "9000000"),
        "a_read_misses_nothing",
        20,
    ),
}
