"""How a step of a case goes otherwise than the case allows."""

from __future__ import annotations

from replispec.conformance.staging import Unread


class StepFailed(Exception):
    """A step did not go as the case allows; the text is the difference."""


class StepUnread(StepFailed, Unread):
    """The subject leaves unread what is written to it."""


class StepBreached(StepFailed):
    """The subject broke the protocol: no repetition mends that."""


class StepUnsupported(Exception):
    """The subject does not know a command that the case needs."""
