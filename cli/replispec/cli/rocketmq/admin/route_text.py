"""The route of a topic, as mqadmin prints it, and as rows.

Source: apache/rocketmq rocketmq-all-5.4.0, TopicRouteSubCommand, RemotingSerializable.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from replispec.cli.rocketmq.admin import broker_text
from replispec.cli.shown import Display
from replispec.wire.rocketmq.broker import TopicRouteData


def route(found: TopicRouteData) -> Display:
    """Of topicRoute: the route as JSON, a line for each value."""
    return Display(_pretty(found.to_json(), 0) + "\n", broker_text.route_list(found).rows)


def _pretty(value: Any, depth: int) -> str:
    """As Java's library writes it: tabs, numeric keys without quotes, nothing after a colon."""
    if not isinstance(value, Mapping | list) or value == []:
        return json.dumps(value, separators=(",", ":"))
    inside = "\t" * (depth + 1)
    if isinstance(value, list):
        parts: Sequence[str] = [_pretty(each, depth + 1) for each in value]
        before, after = "[", "]"
    else:
        parts = [f"{_key(key)}:{_pretty(each, depth + 1)}" for key, each in value.items()]
        before, after = "{", "}"
    lines = f",\n{inside}".join(parts)
    return f"{before}\n{inside}{lines}\n" + "\t" * depth + after


def _key(key: str) -> str:
    return key if key.lstrip("-").isdecimal() else json.dumps(key)
