"""Replay of captured traffic: from packets to frames, events, verdicts and a report."""
