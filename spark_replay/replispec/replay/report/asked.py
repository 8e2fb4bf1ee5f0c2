"""What a replay was asked for: everything, or some groups, or a stretch of time."""

from __future__ import annotations

from dataclasses import dataclass

from replispec.replay.events.group_names import is_named, may_fit


@dataclass(frozen=True, slots=True)
class Asked:
    """Patterns of groups (none: all of them), and [from_ns, until_ns) in UTC; None has no border there."""

    groups: tuple[str, ...] = ()
    from_ns: int | None = None
    until_ns: int | None = None

    def of_group(self, group: str, *, idle: bool = False) -> bool:
        """Whether what is about a group is told: it was asked for, or may be one that was.

        `idle`: it says that there was nothing to judge, which of a group without a name hides nothing.
        """
        if not self.groups:
            return True
        return may_fit(group, self.groups) and (is_named(group) or not idle)


EVERYTHING_ASKED = Asked()
