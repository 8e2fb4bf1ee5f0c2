"""What the benchmarks ask of RocketMQ."""

from __future__ import annotations

from benchmarks.family import Dissected, Hostile, MeasuredFamily, MeasuredGroups, MeasuredRoles
from benchmarks.rocketmq import group, hostile, queues, roles
from benchmarks.rocketmq.codec_cases import cases
from benchmarks.rocketmq.generate_capture import Kind, add_options, generate, wanted
from benchmarks.rocketmq.hostile_attacks import ATTACKS

FAMILY = MeasuredFamily(
    codec_cases=cases,
    capture_options=add_options,
    generate_capture=lambda path, options: generate(path, wanted(options)),
    shapes={kind.value: {"kind": kind.value} for kind in Kind},
    dissected=Dissected(
        script="generated/wireshark/rocketmq.lua",
        shown="rocketmq or rocketmq_ha",
        fields=(
            *("rocketmq.code", "rocketmq.opaque", "rocketmq.flag"),
            *("rocketmq_ha.offset", "rocketmq_ha.epoch", "rocketmq_ha.confirm_offset"),
        ),
    ),
    roles=MeasuredRoles(
        subjects=roles.SUBJECTS,
        against=f"Apache RocketMQ {roles.APACHE.release}",
        figures=roles.FIGURES,
        requests=roles.measure_requests,
        replication=roles.measure_replication,
    ),
    groups=MeasuredGroups(
        subjects=group.SUBJECTS,
        figures=group.FIGURES,
        running=group.running,
        requests=group.measure_requests,
        leaders=group.measure_leaders,
        sets=group.measure_sets,
        restart=group.measure_restart,
        joins=group.measure_joins,
    ),
    hostile=Hostile(tuple(ATTACKS), hostile.measure),
    queues=queues.PARTS,
)
