"""Errors that were in the specification of controllers and brokers, and the promise that finds each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Error:
    """An edit, wherever it fits, that puts an error back; the promise that finds it, in how many steps, and
    others with theirs."""

    file: str
    now: str
    before: str
    system: str
    asked: tuple[str, ...]
    promise: str
    steps: int
    beside: tuple[tuple[str, int], ...] = ()


EVERYWHERE = "every_event_has_an_edge"
"""What every system promises."""
OF_SETS = {
    "what an older notification says ends a doubt": Error(
        "statemachines/rocketmq/broker_role",
        "outlasted and event.is_answer and",
        "(outlasted or doubtful) and",
        "sync_state_set",
        (),
        "counts_with_the_set",
        10,
    ),
    "a refusal in doubt ends it": Error(
        "statemachines/rocketmq/broker_role",
        "    if: doubtful\n    to: MASTER\n    do: [ask_who_is_master, arm doubt]",
        "    if: doubtful and outlasted\n    to: MASTER\n    do: [ask_who_is_master, arm doubt]",
        "sync_state_set",
        (),
        "counts_with_the_set",
        12,
    ),
    "whom it asked in counts no more after a master began again": Error(
        "statemachines/rocketmq/broker_role",
        "event.set_epoch <= asked_set_epoch\n    to: MASTER\n    do: [resume_as_master",
        "event.set_epoch < asked_set_epoch\n    to: MASTER\n    do: [resume_as_master",
        "sync_state_set",
        ("--set", "lost=0", "--set", "crashes=1"),
        "counts_with_the_set",
        9,
    ),
    "whom it asked in is forgotten with an epoch in which nothing was written": Error(
        "statemachines/rocketmq/broker_role",
        "asked_epoch == event.master_epoch and event.set_epoch <= asked_set_epoch",
        "asked_epoch == event.master_epoch and event.set_epoch < asked_set_epoch",
        "sync_state_set",
        ("--set", "lost=0", "--set", "crashes=1"),
        "counts_with_the_set",
        9,
    ),
    "any newer set ends the doubt of a master that began again": Error(
        "statemachines/rocketmq/broker_role",
        "event.set_epoch <= asked_set_epoch\n    to: MASTER\n    do: [count_again]",
        "event.set_epoch < asked_set_epoch\n    to: MASTER\n    do: [count_again]",
        "sync_state_set",
        ("--set", "lost=0", "--set", "crashes=1", "--set", "lags=1"),
        "counts_with_the_set",
        18,
    ),
    "a pause that is left of an earlier proposal asks twice for the next": Error(
        "statemachines/rocketmq/broker_role",
        "do: [ask_alteration, cancel doubt, cancel again]",
        "do: [ask_alteration, cancel doubt]",
        "sync_state_set",
        ("--set", "lags=1"),
        "counts_with_the_set",
        20,
    ),
    "what the controller refused is asked for again at once": Error(
        "statemachines/rocketmq/broker_role",
        "'not paused and size(proposed) == 0",
        "'size(proposed) == 0",
        "sync_state_set",
        ("--set", "lost=0", "--set", "silences=1"),
        "nobody_repeats_a_refused_set",
        10,
    ),
    "what the controller refused once is never asked for again": Error(
        "statemachines/rocketmq/broker_role",
        "event: pause_over, to: MASTER, assign: {paused: false}",
        "event: pause_over, to: MASTER, assign: {paused: paused}",
        "sync_state_set",
        ("--set", "lost=0", "--set", "silences=1"),
        "whoever_lives_joins",
        9,
    ),
    "an alteration without an answer is waited for for ever": Error(
        "statemachines/rocketmq/broker_role",
        "    do: [arm again]\n    assign: {doubtful: true, outlasted: false}",
        "    assign: {doubtful: true, outlasted: false}",
        "sync_state_set",
        (),
        "whoever_lives_joins",
        7,
    ),
    "a master that is lost leaves its masterEpoch to its successor": Error(
        "statemachines/rocketmq/broker_set",
        "      master: let.successor\n      master_epoch: master_epoch + 1\n",
        "      master: let.successor\n      master_epoch: master_epoch\n",
        "sync_state_set",
        ("--set", "lost=0", "--set", "silences=1"),
        "one_master_per_epoch",
        10,
    ),
    "an id that another broker has is granted": Error(
        "statemachines/rocketmq/broker_set",
        "event.owner_code == none and event.broker_id == next_broker_id",
        "event.broker_id + 1 >= next_broker_id",
        "registration",
        ("--set", "lost=0", "--set", "crashes=0"),
        "an_id_has_one_owner",
        14,
        # Its code is no longer that of the broker that has it.
        (("registered_is_reachable", 14),),
    ),
    "nobody asks for a master where an administrator removed it": Error(
        "statemachines/rocketmq/broker_role",
        "event.master == none and event.master_epoch >= master_epoch",
        "event.master == none and event.master_epoch > master_epoch",
        "sync_state_set",
        ("--set", "lost=0", "--set", "removals=1"),
        "some_day_a_master",
        9,
        # Where nobody is master, nobody is let in.
        (("whoever_lives_joins", 9),),
    ),
    "a refused registration is sent again at once": Error(
        "statemachines/rocketmq/broker_registration",
        "    do: [arm retry, tell_failure]\n    assign: {failed: 'true'}\n    clause: [BID-REGISTER-2",
        "    do: [send_registration]\n    assign: {failed: 'true'}\n    clause: [BID-REGISTER-2",
        "registration",
        ("--set", "lost=0", "--set", "crashes=0", "--set", "removals=1"),
        "nobody_repeats_without_pause",
        15,
    ),
    "a set that was emptied begins its epochs anew": Error(
        "statemachines/rocketmq/broker_set",
        "      sync_state_set_epoch: sync_state_set_epoch + (1 if size(sync_state_set) > 0 else 0)\n",
        "      sync_state_set_epoch: 0\n      master_epoch: 0\n",
        "cleaning",
        ("--set", "removals=1", "--set", "silences=0"),
        "epochs_never_fall",
        3,
        (("another_set_has_another_number", 3),),
    ),
    "nobody is elected once all members were removed": Error(
        "statemachines/rocketmq/broker_set",
        "\n    master_epoch > 0 and size(sync_state_set) == 0 and event.preferred != none)",
        "\n    event.unclean)",
        "cleaning",
        ("--set", "removals=1", "--set", "silences=0"),
        "an_election_is_possible",
        4,
    ),
    "who is elected after another takes over its masterEpoch": Error(
        "statemachines/rocketmq/broker_set",
        "      master: let.chosen\n      master_epoch: master_epoch + 1\n",
        "      master: let.chosen\n      master_epoch: master_epoch\n",
        "cleaning",
        ("--set", "removals=0", "--set", "silences=0"),
        "another_master_has_another_epoch",
        5,
    ),
    "a broker registers by another id than its disk holds": Error(
        "statemachines/rocketmq/broker_registration",
        "    assign: {broker_id: event.broker_id, begun: true}",
        "    assign: {broker_id: event.broker_id + 1, begun: true}",
        "registration",
        ("--set", "lost=0"),
        "registered_is_known",
        16,
    ),
    "a registration without an answer is not sent again": Error(
        "statemachines/rocketmq/broker_registration",
        "    do: [find_leader, arm retry, tell_failure]\n    clause: BID-REGISTER-2",
        "    do: [find_leader, tell_failure]\n    clause: BID-REGISTER-2",
        "registration",
        ("--set", "crashes=0"),
        "some_day_registered",
        8,
    ),
    "a master takes a newer set under the older number": Error(
        "statemachines/rocketmq/broker_role",
        "      set_epoch: event.set_epoch\n      proposed:",
        "      proposed:",
        "sync_state_set",
        (),
        "some_day_the_set_is_known",
        7,
        # Due from the first election on: whoever is let in, the master counts under no newer number.
        (("whoever_lives_joins", 4),),
    ),
    "a set that its master changes keeps its number": Error(
        "statemachines/rocketmq/broker_set",
        "assign: {sync_state_set: event.members, sync_state_set_epoch: sync_state_set_epoch + 1}",
        "assign: {sync_state_set: event.members}",
        "cleaning",
        ("--set", "removals=1", "--set", "silences=0"),
        "another_set_has_another_number",
        4,
    ),
    "a set whose master was removed is led still": Error(
        "statemachines/rocketmq/broker_set",
        "    if: master in event.broker_ids\n    to: LEADERLESS\n",
        "    if: master in event.broker_ids\n    to: LED\n",
        "cleaning",
        ("--set", "removals=1", "--set", "silences=0"),
        "the_set_is_as_it_says",
        4,
    ),
    "a whole set without a master is removed with those that live": Error(
        "statemachines/rocketmq/broker_set",
        "(event.broker_ids == none and (master != none or\n"
        "      size(common(broker_ids, event.living)) > 0) or event",
        "(event.broker_ids == none and master != none or event",
        "cleaning",
        ("--set", "strays=1", "--set", "removals=0", "--set", "silences=0"),
        "the_living_are_spared",
        2,
    ),
    "a member that is removed leaves its check code": Error(
        "statemachines/rocketmq/broker_set",
        "      check_codes: 'drop(check_codes, event.broker_ids)'\n    clause: [BID-CLEAN-2, RIP44",
        "    clause: [BID-CLEAN-2, RIP44",
        "cleaning",
        ("--set", "removals=1", "--set", "silences=0"),
        "who_is_known_can_be_told",
        4,
    ),
    "a broker is registered before it asks": Error(
        "statemachines/rocketmq/broker_registration",
        "    event: retry_due\n    to: CREATE_METADATA_FILE_DONE\n",
        "    event: retry_due\n    to: REGISTERED\n",
        "registration",
        ("--set", "crashes=0"),
        "who_serves_is_registered",
        10,
    ),
    "a broker with a temporary file asks for another id": Error(
        "statemachines/rocketmq/broker_registration",
        "    if: event.has_temporary\n",
        "    if: event.has_temporary and event.broker_id < 0\n",
        "registration",
        ("--set", "lost=0"),
        "nobody_takes_two_ids",
        16,
    ),
    "a registration names another set": Error(
        "statemachines/rocketmq/broker_registration",
        "RegisterBrokerToControllerRequest:\n        cluster_name: local.cluster_name\n"
        "        broker_name: local.broker_name\n",
        "RegisterBrokerToControllerRequest:\n        cluster_name: local.broker_name\n"
        "        broker_name: local.cluster_name\n",
        "registration",
        ("--set", "lost=0", "--set", "crashes=0"),
        EVERYWHERE,
        8,
    ),
    "a broker that moved is known where it was": Error(
        "statemachines/rocketmq/broker_set",
        "    assign: {addresses: 'put(addresses, event.broker_id, event.address)'}\n",
        "",
        "registration",
        ("--set", "lost=0", "--set", "crashes=0", "--set", "moves=1"),
        "registered_is_reachable",
        13,
    ),
    "a broker writes an id that nobody named": Error(
        "statemachines/rocketmq/broker_registration",
        "    do: [write_temporary]\n    assign: {broker_id: event.next_broker_id}\n",
        "    do: [write_temporary]\n",
        "registration",
        ("--set", "lost=0", "--set", "crashes=0"),
        "a_file_holds_an_id",
        3,
    ),
    "a master that begins alone never looks whether members keep up": Error(
        "statemachines/rocketmq/broker_role",
        "event: serving, to: MASTER, do: [arm awaited, cancel check], clause: RIP44-SHRINK-2}\n",
        "event: serving, if: size(members) > 1, to: MASTER, do: [arm awaited, cancel check]}\n"
        "  - {from: MASTER, event: serving, else: true, to: MASTER}\n",
        "sync_state_set",
        ("--set", "lost=0", "--set", "offices=1"),
        "some_day_members_are_looked_at",
        6,
    ),
}
