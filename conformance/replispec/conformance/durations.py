"""How long the player of a case waits, in seconds, before patience multiplies it."""

from __future__ import annotations

SETTLE_S = 0.05
# How long a subject may leave bytes unread.
SEND_S = 10.0
CASE_S = 110.0
# The same where a case has subjects started, whose own timers last tens of seconds.
PLAYED_CASE_S = 300.0
# How soon what prepares a case is sent again to a subject that has too much to do.
BUSY_EVERY_S = 0.5
# How long a log may take to come.
REPLICATE_S = 60.0
PUT_BACK_S = 10.0
