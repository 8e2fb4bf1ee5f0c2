"""What administrators configure of groups of consumers, and how a broker goes by it.

Source: apache/rocketmq rocketmq-all-5.4.0, SubscriptionGroupManager.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from replispec.broker.rocketmq.core.copied import CopiedTable
from replispec.broker.rocketmq.core.table_file import later
from replispec.broker.rocketmq.core.topics import Kept
from replispec.wire.rocketmq import constants
from replispec.wire.rocketmq.broker import DataVersion
from replispec.wire.rocketmq.client import SubscriptionGroup, SubscriptionGroupTable

Groups = dict[str, SubscriptionGroup]
Change = Callable[[Groups], None]


class SubscriptionGroups:
    """All that is configured, in the table that replicas copy. A change counts once it is on the disk; one
    write is under way at a time, and what is changed meanwhile goes out together in the next."""

    def __init__(self, table: CopiedTable[SubscriptionGroupTable]) -> None:
        self._table = table
        self._waiting: list[tuple[Change, Kept]] = []

    def get(self, name: str) -> SubscriptionGroup | None:
        """What is configured of a group; None for nothing."""
        table = self._table.table
        return None if table is None else (table.subscription_group_table or {}).get(name)

    def may_consume(self, name: str) -> bool:
        """Whether a group may read: unless somebody configured that it may not."""
        found = self.get(name)
        return found is None or found.consume_enable is not False

    def retries_max(self, name: str) -> int:
        """How often a group tries a message again, by its name or that of its topic of retries."""
        found = self.get(name.removeprefix(constants.RETRY_TOPIC_PREFIX))
        times = None if found is None else found.retry_max_times
        return constants.RETRIES_MAX if times is None else times

    def put(self, group: SubscriptionGroup, now_ms: int, kept: Kept) -> None:
        """Keep the settings of a group; `kept` is told when they are on the disk."""

        def change(groups: Groups) -> None:
            groups[group.group_name or ""] = group

        self._change(change, now_ms, kept)

    def drop(self, name: str, now_ms: int, kept: Kept) -> None:
        """Forget them; likewise."""

        def change(groups: Groups) -> None:
            groups.pop(name, None)

        self._change(change, now_ms, kept)

    def _change(self, change: Change, now_ms: int, kept: Kept) -> None:
        self._waiting.append((change, kept))
        self._go_on(now_ms)

    def _go_on(self, now_ms: int) -> None:
        if not self._waiting or self._table.is_writing:
            return
        changes, self._waiting = self._waiting, []
        table = self._table.table or SubscriptionGroupTable()
        groups = dict(table.subscription_group_table or {})
        for change, _ in changes:
            change(groups)
        version = DataVersion(later((table.data_version or DataVersion()).counter or 0), 0, now_ms)
        changed = replace(table, data_version=version, subscription_group_table=groups)

        def written(reason: str, at_ms: int) -> None:
            for _, kept in changes:
                kept(reason, at_ms)
            self._go_on(at_ms)

        self._table.put(changed, now_ms, written)
