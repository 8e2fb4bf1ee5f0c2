"""Errors of logical queues that move, and of static topics that are mapped elsewhere, and who finds each."""

from __future__ import annotations

from tests.explorer.errors import Error

_SEGMENT = "statemachines/rocketmq/logical_queue_segment"
_QUEUE = "statemachines/rocketmq/static_topic_queue"
_RUN = "statemachines/rocketmq/static_topic_remapping"
_MOVE = "statemachines/rocketmq/logical_queue_migration"
_NO_LOSS = ("--set", "lost=0")
_STRAYS = (*_NO_LOSS, "--set", "strays=1")
_ONE_RUN = (*_NO_LOSS, "--set", "moves=1")
_ONE_MOVE = (*_NO_LOSS, "--set", "migrations=1")
_DELETED = (*_NO_LOSS, "--set", "deletions=1")
_ENDS = "rule.segment_end(physical_start, let.end, logical_start)"

OF_QUEUES = {
    "nobody decides where the next segment begins": Error(
        _SEGMENT,
        f"rule.following(event.target, {_ENDS})",
        "event.target",
        "migration",
        (),
        "some_day_finished",
        4,
    ),
    "the next segment begins one message too late": Error(
        _SEGMENT, _ENDS, f"{_ENDS} + 1", "migration", (), "starts_follow_without_a_hole", 8
    ),
    "the next segment begins one message too early": Error(
        _SEGMENT, _ENDS, f"max({_ENDS} - 1, 0)", "migration", (), "no_offset_is_given_twice", 9
    ),
    "an end is not recorded": Error(
        _SEGMENT,
        "      physical_end: let.end\n      successor",
        "      successor",
        "migration",
        (),
        "a_seal_stays",
        6,
        (("a_segment_is_what_it_says", 6),),
    ),
    "the second target wins": Error(
        _SEGMENT,
        "    if: successor == none\n",
        "    if: successor == none or event.place >= 0\n",
        "migration",
        (),
        "the_first_target_wins",
        10,
    ),
    "a target is read and written at once": Error(
        _SEGMENT,
        "    if: event.is_target\n    to: WRITE_ONLY\n    do: [record_segment]",
        "    if: not event.is_target\n    to: WRITE_ONLY\n    do: [record_segment]",
        "migration",
        (),
        "one_decides_offsets",
        4,
    ),
    "who repeats a question is refused": Error(
        _SEGMENT,
        "event: prepared, else: true, to: same, do: [answer_successor]",
        "event: prepared, else: true, to: same, do: [refuse_undecided]",
        "migration",
        (),
        "some_day_finished",
        7,
    ),
    "a late request ends what its message queue has become": Error(
        _SEGMENT,
        "    event: prepared\n    if: event.place != physical_start\n",
        "    event: prepared\n    if: event.place < 0\n",
        "migration",
        ("--set", "deletions=1"),
        "some_segment_is_written",
        23,
    ),
    "a late start is taken for that of what the message queue is now": Error(
        _SEGMENT,
        "    event: committed\n    if: event.place != physical_start\n",
        "    event: committed\n    if: event.place < physical_start\n",
        "migration",
        (*_ONE_MOVE, "--set", "strays=1"),
        "one_decides_offsets",
        5,
    ),
    "a message queue that is taken again keeps its end": Error(
        _SEGMENT,
        "physical_start: event.message_end, physical_end: '-1', successor: none}",
        "physical_start: event.message_end, successor: none}",
        "migration",
        _DELETED,
        "a_segment_is_what_it_says",
        14,
    ),
    "a message queue that is taken again keeps who followed it": Error(
        _SEGMENT,
        "physical_end: '-1', successor: none}\n    clause: [RIP21-STATE-2, RIP21-MIGRATE-2",
        "physical_end: '-1'}\n    clause: [RIP21-STATE-2, RIP21-MIGRATE-2",
        "migration",
        _DELETED,
        "a_segment_is_what_it_says",
        14,
    ),
    "a segment that is sealed without a message is read": Error(
        _SEGMENT,
        "let.end > max(physical_start, event.first_kept)",
        "let.end >= max(physical_start, event.first_kept)",
        "migration",
        _ONE_MOVE,
        "a_segment_is_what_it_says",
        6,
    ),
    "what has no message any more is read": Error(
        _SEGMENT,
        "    if: event.first_kept >= physical_end\n",
        "    if: event.first_kept > physical_end\n",
        "migration",
        _DELETED,
        "a_segment_is_what_it_says",
        8,
    ),
    "the administrator forgets what the source decided": Error(
        _MOVE,
        "{source: event.source, target: event.target}\n    clause: [RIP21-MIGRATE-1, RIP21-MIGRATE-4]",
        "{source: event.source}\n    clause: [RIP21-MIGRATE-1, RIP21-MIGRATE-4]",
        "migration",
        _ONE_MOVE,
        "some_day_finished",
        4,
    ),
    "who passes over a lost broker begins at 0": Error(
        _MOVE,
        "assign: {target: 'rule.begun_at(event.target, start)'}",
        "assign: {target: 'rule.begun_at(event.target, min(start, 0))'}",
        "migration",
        (*_ONE_MOVE, "--set", "disasters=1"),
        "no_offset_is_given_twice",
        8,
    ),
    "a message queue that was never used is taken again": Error(
        _SEGMENT,
        "    if: event.message_end <= physical_start\n",
        "    if: event.message_end < physical_start\n",
        "migration",
        (),
        "some_segment_is_written",
        21,
    ),
    "the epoch is not checked": Error(
        _QUEUE,
        "event.epoch < epoch and not event.is_forced",
        "event.epoch < epoch and event.is_forced",
        "remapping",
        (),
        "epochs_never_fall",
        10,
    ),
    "an item that changed is taken": Error(
        _QUEUE,
        "not event.is_forced and not rule.follows_items(items, event.items)",
        "event.is_forced and not rule.follows_items(items, event.items)",
        "remapping",
        (),
        "a_start_stays",
        16,
    ),
    "who led goes on as long as it holds an item": Error(
        _QUEUE,
        "    if: rule.leader_of(event.items) == event.broker_name\n    to: LEADING",
        "    if: rule.holds_item(event.items, event.broker_name) and size(event.items) != 3\n    to: LEADING",
        "remapping",
        (),
        "a_queue_is_what_its_items_say",
        9,
    ),
    "who waits for its start gives offsets": Error(
        _QUEUE,
        "rule.leader_of(event.items) == event.broker_name and rule.leads_undecided(event.items)",
        "rule.leader_of(event.items) == event.broker_name and size(event.items) < 1",
        "remapping",
        _NO_LOSS,
        "one_decides_offsets",
        7,
        (
            ("a_queue_is_what_its_items_say", 7),
            ("an_item_begins_at_a_block", 7),
            ("no_offset_is_given_twice", 7),
        ),
    ),
    "who refuses an older mapping forgets what it holds": Error(
        _QUEUE,
        "    if: event.epoch < epoch and not event.is_forced\n    to: same\n",
        "    if: event.epoch < epoch and not event.is_forced\n    to: ABSENT\n",
        "remapping",
        (*_STRAYS, "--set", "moves=1"),
        "a_queue_is_what_its_items_say",
        3,
        (("some_broker_takes_messages", 3),),
    ),
    "a mapping of another broker is taken": Error(
        _QUEUE,
        "if: not event.is_own, to: same",
        "if: not event.is_own and event.epoch < 0, to: same",
        "remapping",
        (*_STRAYS, "--set", "moves=1"),
        "some_broker_takes_messages",
        10,
    ),
    "another leader is taken under an equal epoch": Error(
        _QUEUE,
        "      event.epoch == epoch and not event.is_forced and size(items) > 0\n",
        "      event.epoch < epoch and not event.is_forced and size(items) > 0\n",
        "remapping",
        (*_STRAYS, "--set", "moves=1"),
        "some_broker_takes_messages",
        3,
    ),
    "who led is told before anybody else takes messages": Error(
        _RUN,
        "transitions:\n",
        "transitions:\n  - from: IDLE\n    event: begun\n    if: event.losing > 0\n    to: LOSING\n"
        "    do: [set_mapping]\n    assign: {gaining: event.gaining, losing: event.losing, "
        "others: event.others, waiting: event.losing}\n    clause: ST-REMAP-1\n",
        "remapping",
        (),
        "some_broker_takes_messages",
        7,
    ),
    "a run that was interrupted tells nobody": Error(
        _RUN,
        "    if: event.others > 0\n    to: TELLING\n",
        "    if: event.others > 9\n    to: TELLING\n",
        "remapping",
        (),
        "some_day_finished",
        3,
    ),
    "those that led are not told": Error(
        _RUN,
        "    event: mapping_set\n    if: losing > 0\n    to: LOSING\n",
        "    event: mapping_set\n    if: losing > 1\n    to: LOSING\n",
        "remapping",
        _ONE_RUN,
        "some_day_finished",
        7,
    ),
    "an answer is waited for that nobody gives": Error(
        _RUN,
        "    assign: {waiting: losing}\n    clause: ST-REMAP-1\n  - from: LOSING\n",
        "    assign: {waiting: losing + 1}\n    clause: ST-REMAP-1\n  - from: LOSING\n",
        "remapping",
        _ONE_RUN,
        "some_day_finished",
        7,
    ),
    "a mapping that names no item forgets those that were known": Error(
        "systems/rocketmq/remapping",
        "event.items if size(event.items) > 0 else self.queue.items",
        "event.items",
        "remapping",
        ("--set", "lost=0", "--set", "sends=1"),
        "some_day_finished",
        19,
    ),
    "an item begins where the one before it ends": Error(
        "systems/rocketmq/remapping",
        "rule.next_block(self.read + rule.own_start(part(self.items, 0,\n            size(self.items) - 1), "
        "text(byte(96 + self.loser))))",
        "self.read + rule.own_start(part(self.items, 0,\n            size(self.items) - 1), "
        "text(byte(96 + self.loser)))",
        "remapping",
        ("--set", "sends=1", "--set", "stragglers=1", "--set", "lost=0"),
        "an_item_begins_at_a_block",
        12,
    ),
}
