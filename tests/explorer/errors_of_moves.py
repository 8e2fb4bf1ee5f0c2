"""Errors that Kafka's partitions could have while they move from broker to broker, and who finds each."""

from __future__ import annotations

from tests.explorer.errors import Error

OF_MOVES = {
    "a move ends while a broker that lives has its old replica": Error(
        "statemachines/kafka/reassignment",
        "    if: size(common(leaving, event.live)) == 0\n",
        "    if: size(leaving) >= 0\n",
        "moving",
        (),
        "nobody_keeps_a_replica",
        9,
    ),
    "who moves goes on where the old replicas left the ISR": Error(
        "statemachines/kafka/reassignment",
        "    if: size(without(target, event.isr)) == 0\n",
        "    if: size(without(target, event.isr)) == 0 and size(without(event.isr, target)) == 0\n",
        "moving",
        (),
        "some_day_it_has_moved",
        0,
    ),
    "the old leader leads though it is not kept": Error(
        "statemachines/kafka/partition",
        "      leader: 'rule.leader_of(event.replicas, leader, common(let.kept, event.live))'\n",
        "      leader: leader\n",
        "moving",
        (),
        "leader_is_in_sync",
        7,
    ),
    "the request goes before the topic's node says what it wants": Error(
        "systems/kafka/moving",
        "      store.node: set(b.number for b in broker if b.number > 1)\n",
        "",
        "moving",
        (),
        "request_is_not_lost",
        10,
        (("nobody_keeps_a_replica", 10),),
    ),
}
