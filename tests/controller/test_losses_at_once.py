"""Masters that are lost at once: each is followed by one record, and all that are lost during a write share
the next one."""

from __future__ import annotations

from replispec.wire.rocketmq.codes import RequestCode, ResponseCode
from tests.controller.conversation import (
    StoredJournal,
    Talk,
    alteration,
    application,
    controller,
    election,
    heartbeat,
    members,
    question,
    registration,
)

SETS = [f"set-{number}" for number in range(20)]


def led(talk: Talk, name: str) -> tuple[int, int]:
    """A set of two that are in sync: the connections of its master and of its replica."""
    at = {broker: talk.connect() for broker in (1, 2)}
    for broker, connection in at.items():
        talk.ask(connection, RequestCode.CONTROLLER_APPLY_BROKER_ID, application(broker, name))
        talk.ask(connection, RequestCode.CONTROLLER_REGISTER_BROKER, registration(broker, name=name))
        talk.ask(connection, RequestCode.BROKER_HEARTBEAT, heartbeat(broker, name=name))
    talk.ask(at[1], RequestCode.CONTROLLER_ELECT_MASTER, election(1, name=name))
    answer = talk.ask(
        at[1], RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET, alteration(1, 1, name), members(1, 1, 2)
    )
    assert answer.header.code == ResponseCode.SUCCESS
    return at[1], at[2]


def test_masters_lost_during_a_write_are_followed_by_one_record_each_in_the_next() -> None:
    journal = StoredJournal()
    talk = controller(journal)
    masters = [led(talk, name)[0] for name in SETS]
    records, commits = len(journal.kept), journal.commits
    talk.holds_writes = True
    for connection in masters:
        talk.close(connection)
    talk.write()
    asker = talk.connect()
    for name in SETS:
        answer = talk.ask(asker, RequestCode.CONTROLLER_GET_REPLICA_INFO, question(name))
        assert (answer.header.ext_fields or {})["masterBrokerId"] == "2"
    assert journal.commits - commits == 2
    assert len(journal.kept) - records == len(SETS)
