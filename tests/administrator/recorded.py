"""What processes answered once, and what Apache's mqadmin printed of the same answers.

Made by `python -m lab.rocketmq.administration` of two clusters: one of ours, one of Apache RocketMQ 5.4.0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

from replispec.administrator.rocketmq.plans import Asking, Plan, Reply
from replispec.runtime.rocketmq.framing import Command
from replispec.wire.rocketmq.remoting import RemotingHeader

T = TypeVar("T")
FOLDER = Path(__file__).parent / "recorded"
CLUSTERS = ("replispec", "apache-5.4.0")


@dataclass(frozen=True, slots=True)
class Recorded:
    """The texts of mqadmin by its command line, and answers by what was asked."""

    at_ms: int
    texts: Mapping[str, str]
    answers: Mapping[tuple[str, str, tuple[tuple[str, object], ...], str], Command]

    def command(self, begins: str) -> str:
        """The whole command line of the only command that begins so."""
        (found,) = (each for each in self.texts if each.startswith(begins))
        return found

    def reply(self, question: Asking) -> Reply:
        """What was answered to a question. Raises KeyError for one that nobody asked."""
        # What whoever asks for a route knows of changes nothing of the route of a plain topic.
        fields = tuple(sorted((key, each) for key, each in question.fields.items() if key != "sysFlag"))
        key = question.address, question.code.name, fields, question.body.decode()
        return Reply(question, self.answers[key])

    def carried_out(self, plan: Plan[T]) -> T:
        """What a plan comes to with these answers."""
        asked = next(plan)
        try:
            while True:
                asked = plan.send([self.reply(each) for each in asked])
        except StopIteration as end:
            result: T = end.value
            return result


@cache
def recorded(name: str) -> Recorded:
    """One cluster."""
    told = json.loads((FOLDER / f"{name}.json").read_text())
    answers = {}
    for each in told["answers"]:
        header = RemotingHeader(
            code=each["code"], remark=each["remark"], ext_fields=each["answer_fields"] or None
        )
        key = each["address"], each["request"], tuple(sorted(each["fields"].items())), each["body"]
        answers[key] = Command(header, each["answer"].encode())
    return Recorded(told["at_ms"], told["texts"], answers)
