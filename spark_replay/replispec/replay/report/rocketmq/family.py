"""The words of Apache RocketMQ in a report."""

from __future__ import annotations

from replispec.replay.report.family import ReportFamily
from replispec.replay.report.rocketmq.lost_messages import lost_messages
from replispec.replay.report.rocketmq.rule_words import words
from replispec.replay.report.rocketmq.topics import in_short

FAMILY = ReportFamily(words, lost_messages, in_short)
