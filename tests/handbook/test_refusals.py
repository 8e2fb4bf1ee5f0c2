"""What a machine answers to a request that is no event stands on its page, as the suite judges by it."""

from __future__ import annotations

from tests.handbook.shared import ROOT, all_known

HEADING = "## Refused before it is an event\n"


def test_what_a_machine_refuses_stands_on_its_page() -> None:
    told = 0
    for family, known in all_known().items():
        for name, machine in known.spec.machines.items():
            page = (ROOT / "generated/docs" / family / "machines" / f"{name}.md").read_text("utf-8")
            section = page.partition(HEADING)[2].partition("\n## ")[0]
            missing = machine.bindings.missing
            assert bool(section) == (missing is not None), name
            for source in machine.bindings.sources:
                for refusal in source.refusals:
                    told += 1
                    rows = [row for row in section.splitlines() if row.startswith(f"| `{source.event}` |")]
                    assert any(f"| `{refusal.code.member}` | remark " in row for row in rows), source
            if missing is not None:
                assert f"is answered `{missing.member}`." in section
    assert told > 0
