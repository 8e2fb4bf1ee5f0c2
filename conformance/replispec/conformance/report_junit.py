"""A run as JUnit XML: one suite per topic, as continuous integration reads it."""

from __future__ import annotations

import re
from itertools import groupby
from xml.etree import ElementTree as ET

from replispec.conformance.results import CaseResult, CaseVerdict, RunResult, Standing

# Source: Extensible Markup Language 1.0, 2.2 "Characters".
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ONE_ERROR = {"tests": "1", "failures": "0", "errors": "1", "skipped": "0"}
_NOT_JUDGED = "nothing judged"


def junit_xml(run: RunResult) -> bytes:
    """The document. Failures are findings only: an expected failure is a skipped test with its reason."""
    top = ET.Element("testsuites", name=" ".join(filter(None, (run.kind, run.implementation, run.release))))
    ordered = sorted(run.results, key=lambda each: each.topic)
    for topic, group in groupby(ordered, key=lambda each: each.topic):
        cases = list(group)
        suite = ET.SubElement(top, "testsuite", name=f"{run.kind}/{topic}", tests=str(len(cases)))
        counts = {"failures": 0, "errors": 0, "skipped": 0}
        for case in cases:
            kind = _add(suite, case, is_finding=run.is_finding(case))
            if kind:
                counts[kind] += 1
        suite.attrib.update({name: str(count) for name, count in counts.items()})
        suite.set("time", f"{sum(case.took_s for case in cases):.3f}")
        suite.set("timestamp", run.began)
    for wrong in run.beside():
        _add_error(top, run.kind, "the run itself", wrong)
    for name in ("tests", "failures", "errors", "skipped"):
        top.set(name, str(sum(int(suite.get(name, "0")) for suite in top)))
    top.set("time", f"{run.took_s:.3f}")
    return _document(top)


def nothing_judged(kind: str, reason: str) -> bytes:
    """The document of a run that found nobody to judge: one test with an error."""
    top = ET.Element("testsuites", name=kind, attrib=_ONE_ERROR)
    _add_error(top, kind, "a subject that can be judged", reason)
    return _document(top)


def _add_error(top: ET.Element, kind: str, name: str, reason: str) -> None:
    suite = ET.SubElement(top, "testsuite", name=kind, attrib=_ONE_ERROR)
    test = ET.SubElement(suite, "testcase", classname=kind, name=name)
    ET.SubElement(test, "error", type=_NOT_JUDGED, message=_printable(reason))


def _document(top: ET.Element) -> bytes:
    ET.indent(top)
    return bytes(ET.tostring(top, encoding="utf-8", xml_declaration=True)) + b"\n"


def _add(suite: ET.Element, case: CaseResult, *, is_finding: bool) -> str:
    """One test; returns what it counts as beside having run."""
    test = ET.SubElement(suite, "testcase", classname=case.clause, name=case.id, time=f"{case.took_s:.3f}")
    said = _printable(case.reason or case.standing.value)
    if case.standing is Standing.NOT_JUDGED:
        found = ET.SubElement(test, "error", type=case.standing.value, message=said)
        found.text = _printable(_trace(case))
        return "errors"
    if is_finding:
        found = ET.SubElement(test, "failure", type=case.standing.value, message=said)
        found.text = _printable(_trace(case))
        return "failures"
    if case.verdict is not CaseVerdict.PASS:
        why = f"{case.standing.value}: {case.expected or case.reason}"
        ET.SubElement(test, "skipped", message=_printable(why))
        return "skipped"
    return ""


def _trace(case: CaseResult) -> str:
    steps = (f"{each.at_s:8.3f} {each.on} {each.way} {each.says} {each.data}" for each in case.trace)
    return "\n".join((case.requirement, "", *(step.rstrip() for step in steps)))


def _printable(text: str) -> str:
    """XML has no way to write most control characters, and a subject may send them."""
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", text)
