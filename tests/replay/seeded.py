"""Which fault breaks which rules, of which capture, and edits that the protocol permits.

Every other verdict stays what it is in the clean capture.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.replay import expectations as rule
from tests.replay import faults as one
from tests.replay import more_faults as more
from tests.replay import stored_faults as stored
from tests.replay.faults import Edit

SET, LEARNER, PATIENT, LONG = "c_syncstateset", "d_async_learner", "f1_510_first_start", "m_mtu1500"
"""Captures; in that of 5.1.0 the master confirms no more than its replica has reported."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One edit of one capture, the rules that it breaks, and those that it leaves unable to judge.

    `lost`: how many acknowledged messages it loses; `all_ack` as the judge is told.
    """

    capture: str
    edit: Edit
    breaks: frozenset[str]
    doubts: frozenset[str] = frozenset()
    lost: int = 0
    all_ack: bool = False


def _fault(
    capture: str,
    edit: Edit,
    *breaks: str,
    doubts: str | tuple[str, ...] = (),
    lost: int = 0,
    all_ack: bool = False,
) -> Fault:
    doubted = (doubts,) if isinstance(doubts, str) else doubts
    return Fault(capture, edit, frozenset(breaks), frozenset(doubted), lost, all_ack)


SEEDED: tuple[Fault, ...] = (
    _fault(SET, one.another_master, rule.ONE_MASTER, rule.EPOCHS_GROW, rule.BROKER_SET),
    _fault(SET, one.epoch_falls, rule.EPOCHS_GROW, rule.BROKER_SET),
    _fault(SET, one.another_set, rule.SET_BY_EPOCH, rule.BROKER_SET),
    _fault(SET, one.not_the_master_alters, rule.ONLY_MASTER, rule.BROKER_SET),
    _fault(SET, one.report_too_far, rule.ACK_WITHIN_SENT),
    _fault(SET, one.bytes_left_out, rule.OFFSET_CHAIN, rule.REPLICA_MACHINE),
    _fault(SET, one.border_inside, rule.BATCH_IN_EPOCH),
    _fault(SET, one.learner_in_the_set, rule.LEARNER_OUTSIDE, rule.LEARNER),
    _fault(SET, one.answered_twice, rule.PAIRING),
    _fault(LEARNER, one.message_after_the_next_epoch, rule.SEND_SURVIVES, lost=1),
    _fault(LEARNER, one.other_bytes, rule.SAME_BYTES),
    _fault(SET, stored.bit_of_a_body, rule.BODY_STORED),
    _fault(SET, stored.another_message, rule.BODY_STORED),
    _fault(LEARNER, one.id_granted_again, rule.GRANTED_ONCE, rule.BROKER_SET, doubts=rule.NEXT_ID),
    _fault(LEARNER, one.silence_at_the_new_leader, rule.HEARTBEATS),
    _fault(PATIENT, one.confirmed_too_much, rule.CONFIRM_COVERS, all_ack=True),
    _fault(SET, one.other_set_than_asked, rule.BROKER_SET),
    _fault(SET, one.announced_without_registration, rule.REPLICAS_MANAGER),
    _fault(SET, one.handshake_in_transfer, rule.REPLICA_MACHINE),
    _fault(SET, one.unasked_answer, rule.MASTER_MACHINE),
    _fault(SET, one.no_next_id, rule.REGISTRATION),
    _fault(SET, one.registers_without_applying, rule.REGISTRATION),
    _fault(SET, more.first_id_of_two_brokers, rule.GRANTED_ONCE, rule.BROKER_SET, doubts=rule.NEXT_ID),
    _fault(SET, more.next_id_is_taken, rule.NEXT_ID, doubts=rule.BROKER_SET),
    _fault(SET, more.address_of_nobody, rule.EPOCHS_GROW),
    _fault(LEARNER, more.epoch_of_the_future, rule.EPOCHS_GROW, rule.BROKER_SET),
    _fault(SET, more.master_leaves_its_set, rule.SET_BY_EPOCH, rule.BROKER_SET),
    _fault(SET, more.set_is_emptied, rule.SET_BY_EPOCH, rule.BROKER_SET),
    _fault(SET, more.set_epoch_falls, rule.EPOCHS_GROW, rule.SET_BY_EPOCH, rule.BROKER_SET),
    # What nobody contradicts later may follow from requests that were not captured.
    _fault(SET, more.set_epoch_of_the_future, doubts=rule.BROKER_SET),
    _fault(SET, more.body_contradicts_its_header, rule.EPOCHS_GROW, rule.BROKER_SET),
    _fault(SET, more.unasked_member, rule.SET_BY_EPOCH, rule.BROKER_SET),
    _fault(SET, more.member_that_is_still_to_be_granted, rule.BROKER_SET),
    # Its grant may have been on a connection that was not captured.
    _fault(SET, more.member_whose_grant_nobody_saw, doubts=rule.BROKER_SET),
    _fault(SET, more.header_without_bytes_moves_a_start, rule.BATCH_IN_EPOCH),
    _fault(SET, more.stale_epoch_is_obeyed, rule.BROKER_SET, doubts=rule.ONLY_MASTER),
    _fault(SET, more.stale_set_epoch_is_obeyed, rule.BROKER_SET),
    _fault(
        SET, more.stranger_is_elected, rule.ONE_MASTER, rule.EPOCHS_GROW, rule.BROKER_SET, rule.ONLY_MASTER
    ),
    _fault(LEARNER, more.notified_of_another_master, rule.ONE_MASTER, rule.BROKER_SET),
    _fault(SET, more.registered_under_another_master, rule.ONE_MASTER, rule.EPOCHS_GROW, rule.BROKER_SET),
    _fault(SET, more.one_way_is_answered, rule.PAIRING),
    _fault(SET, more.answer_to_another_number, rule.PAIRING),
    _fault(LEARNER, more.former_label, rule.BATCH_IN_EPOCH),
    _fault(LEARNER, more.epoch_start_moves, rule.BATCH_IN_EPOCH),
    # It begins before the log does, which no epoch can.
    _fault(SET, more.epoch_start_moves, rule.BATCH_IN_EPOCH, rule.REPLICA_MACHINE),
    _fault(LEARNER, more.epoch_from_nowhere, rule.BATCH_IN_EPOCH),
    _fault(SET, more.confirm_offset_falls, rule.CONFIRM_HOLDS),
    _fault(SET, more.confirm_offset_falls_a_little, rule.CONFIRM_HOLDS),
    _fault(LEARNER, more.confirmed_what_is_cut, rule.CONFIRMED_SURVIVE, rule.CONFIRM_HOLDS, all_ack=True),
    _fault(SET, more.run_comes_twice, rule.OFFSET_CHAIN, rule.REPLICA_MACHINE),
    _fault(SET, more.run_left_out, rule.OFFSET_CHAIN, rule.REPLICA_MACHINE),
    _fault(SET, more.run_overlaps, rule.OFFSET_CHAIN, rule.REPLICA_MACHINE),
    _fault(SET, more.report_falls, rule.ACK_WITHIN_SENT),
    _fault(LEARNER, more.handshake_hides_the_log, rule.ACK_WITHIN_SENT),
    _fault(SET, more.handshake_moves_an_epoch, rule.BATCH_IN_EPOCH),
    _fault(SET, more.report_before_the_handshake, rule.REPLICA_MACHINE, doubts=rule.ACK_WITHIN_SENT),
    _fault(SET, more.handshake_twice, rule.REPLICA_MACHINE),
    _fault(SET, more.two_messages_at_one_place, rule.SEND_SURVIVES, lost=1),
    _fault(SET, more.old_place_is_given_again, rule.SEND_SURVIVES, lost=1),
    _fault(SET, more.log_falls_within_the_epoch, rule.SEND_SURVIVES, rule.LOG_HOLDS, lost=29),
    # Only the order of the capture says that this is the later log, and a connection may have been late.
    _fault(SET, more.shorter_log_of_nobody_knows_when, doubts=(rule.SEND_SURVIVES, rule.LOG_HOLDS)),
)

PERMITTED: tuple[tuple[str, Edit], ...] = (
    # haTransferBatchSize is a setting of the master.
    (LONG, more.run_of_64_kilobytes),
    (SET, more.log_is_whole_after_a_restart),
    (SET, stored.properties_of_the_broker),
    (SET, stored.message_of_a_batch),
)
