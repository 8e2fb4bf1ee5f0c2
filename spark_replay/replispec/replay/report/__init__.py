"""The report: what it says (model), how it says it (wording, timeline), and the page."""

from replispec.replay.report.model import ReportModel
from replispec.replay.report.page import write_report

__all__ = ["ReportModel", "write_report"]
