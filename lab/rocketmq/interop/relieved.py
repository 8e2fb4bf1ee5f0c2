"""Masters of Java that are relieved before they ever looked for transactions, and stand still.

On the way to its new role `BrokerController.changeTransactionCheckServiceStatus` holds the broker's lock and
waits for the thread that looks for unfinished transactions to end, for 90 s at most. That thread was woken
to end, looks once more, and where the topic of half messages was never made, makes it and registers it:
`registerIncrementBrokerData` waits for the same lock. A master looks for the first time 30 s after it was
elected, so that one relieved earlier, which no one was master before, follows nobody for 90 s. That is told
by what its log says of the wait.
"""

from __future__ import annotations

import re

JOIN_S = 90.0
WAITED = re.compile(r"join thread\[TransactionalMessageCheckService\], elapsed time: (\d+)\s?ms")
REASON = "a Java master that was relieved before its first look for transactions waits for its own lock"


def stood_still_s(log: str) -> float:
    """How long a broker waited for its thread on its way to another role, by its log; 0 when it did not."""
    return max((int(each) for each in WAITED.findall(log)), default=0) / 1000
