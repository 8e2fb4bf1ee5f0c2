"""What the caller knows of the streams of a capture."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hints:
    """Ports and addresses ("ADDRESS:PORT") where masters wait for replicas, whether the masters pad their
    answers as those of 5.0.0 do, and whether raw bodies are wanted."""

    ha_ports: frozenset[int] = frozenset()
    ha_addresses: frozenset[str] = frozenset()
    padded_answers: bool = False
    keep_bodies: bool = False
