"""What a broker and a learner answer of their log, on the machine `log_questions`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from replispec.runtime.rocketmq.remoting.answering import Answering
from replispec.runtime.rocketmq.remoting.server import BROKER_RELEASE, Request
from replispec.wire.rocketmq.client import RuntimeInfo
from replispec.wire.rocketmq.controller import EpochEntryCache
from replispec.wire.rocketmq.machines import log_questions_wire as wire


class LogQuestions:
    """Answers whoever asks for epochs and figures; the figures are those of a time in milliseconds."""

    def __init__(self, epochs: Callable[[], EpochEntryCache], figures: Callable[[int], RuntimeInfo]) -> None:
        self._epochs = epochs
        self._figures = figures
        self._now_ms = 0
        self._answering = Answering(
            wire.bound(self),
            {},
            version=BROKER_RELEASE,
        )
        self.table: Final = dict.fromkeys(wire.REQUESTS, self._asked)

    @property
    def epochs(self) -> EpochEntryCache:
        """Epochs, and where the log ends."""
        return self._epochs()

    @property
    def figures(self) -> RuntimeInfo:
        """Figures by name."""
        return self._figures(self._now_ms)

    def _asked(self, request: Request) -> None:
        self._now_ms = request.now_ms
        self._answering.asked(request)
