"""The whole content of summary.json: the outcome of a replay, and the sentence that it comes to."""

from dataclasses import asdict
from typing import Any

from replispec.replay.report.fill import Story, fill
from replispec.replay.report.headline import headline
from replispec.replay.report.summary import Summary


def document(summary: Summary) -> dict[str, Any]:
    """What `Summary.document` holds, with the report's headline behind the engine."""
    content = summary.document()
    said = asdict(headline(fill(summary, Story())))
    return {"engine": content.pop("engine"), "headline": said, **content}
