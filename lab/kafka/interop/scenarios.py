"""The scenarios by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lab.family import Scenario
from lab.kafka.interop import controlled, handed, learned, mixed, tails

SCENARIOS: Final[Mapping[str, tuple[Scenario, str]]] = {
    "controlled": (controlled.play, "our controller over three real brokers, three generations, two stores"),
    "mixed": (mixed.play, "two of our brokers and a real one, four clients, each broker is killed"),
    "tails": (tails.play, "a leader ends with records of its own: real, ours, real; both ways to cut"),
    "handed": (handed.play, "a folder of logs goes from ours to a real broker and back"),
    "learned": (learned.play, "our learner behind real brokers, killed twice"),
}
