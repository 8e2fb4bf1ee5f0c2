"""A machine as a picture: states below each other, edges in lanes beside them, all of them links.

An edge down runs on the right, an edge up on the left; what stays in its state is listed inside of it. No two
edges share a lane where they would touch, so that every label has room. Colours are those of the page.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from replispec.compiler.model.machine import MachineSpec
from replispec.handbook.places import EdgeRow, anchor, edge_rows

LINE: Final = 15
PER_LETTER: Final = 6.7
PADDING: Final = 10
GAP_MIN: Final = 26
LANE_MIN: Final = 26
LABEL_LETTERS_MAX: Final = 30

_TIP: Final = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" '
    'orient="auto-start-reverse"><path d="M0 0 8 4 0 8z"/></marker></defs>'
)


@dataclass(slots=True)
class _Box:
    """A state with what stays in it: top edge and height in pixels."""

    name: str
    stays: list[EdgeRow]
    ports: int = 0
    top: float = 0
    height: float = 0

    def lay(self) -> None:
        """Room for the name, for what stays, and for every edge that begins or ends here."""
        self.height = max(LINE * (1.6 + len(self.stays)) + PADDING, (self.ports + 1) * 9)


@dataclass(slots=True)
class _Arrow:
    """All edges from one state to another: the lane, and where it leaves and arrives."""

    start: int
    to: int
    rows: list[EdgeRow]
    lane: int = 0
    start_y: float = 0
    to_y: float = 0

    @property
    def span(self) -> tuple[int, int]:
        """The states between which it runs, the upper one first."""
        return min(self.start, self.to), max(self.start, self.to)

    @property
    def height(self) -> float:
        """What its label takes."""
        return LINE * len(self.rows) + PADDING

    @property
    def width(self) -> float:
        """What its lane takes."""
        return LANE_MIN + PER_LETTER * max(len(_label(row)) for row in self.rows)


def diagram(machine: MachineSpec) -> str:
    """The picture as one line of SVG, to stand in a page of its own."""
    boxes, arrows = _parts(machine)
    for arrow in arrows:
        boxes[arrow.start].ports += 1
        boxes[arrow.to].ports += 1
    _lay_rows(boxes, arrows)
    sides = {side: [each for each in arrows if (each.start < each.to) is side] for side in (True, False)}
    widths = {side: _lay_lanes(found) for side, found in sides.items()}
    _lay_ports(boxes, sides)
    letters = max(len(text) for box in boxes for text in (box.name, *map(_label, box.stays)))
    middle = PER_LETTER * letters * 1.15 + 2 * PADDING
    left = sum(widths[False]) + PADDING
    right = left + middle
    width = right + sum(widths[True]) + PADDING
    height = boxes[-1].top + boxes[-1].height + PADDING
    head = (
        f'<svg class="machine" role="img" aria-label="{escape(machine.name)}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}">'
    )
    drawn = [head, _TIP]
    for side, found in sides.items():
        for arrow in found:
            drawn += _drawn_arrow(arrow, right if side else left, widths[side], 1 if side else -1)
    for box in boxes:
        drawn += _drawn_box(machine, box, left, middle)
    return f'<div class="machine-picture">{"".join(drawn)}</svg></div>'


def _parts(machine: MachineSpec) -> tuple[list[_Box], list[_Arrow]]:
    """Boxes in the order of the states, and arrows, from the edges that hold for all releases."""
    at = {name: number for number, name in enumerate(machine.states)}
    boxes = [_Box(name, []) for name in machine.states]
    arrows: dict[tuple[int, int], _Arrow] = {}
    for row in edge_rows(machine)[0]:
        if row.edge is None:
            continue
        start, to = at[row.state], at[row.edge.to]
        if start == to:
            boxes[start].stays.append(row)
        else:
            arrows.setdefault((start, to), _Arrow(start, to, [])).rows.append(row)
    return boxes, list(arrows.values())


def _lay_rows(boxes: Sequence[_Box], arrows: Sequence[_Arrow]) -> None:
    """Tops of the boxes: so far apart that the label of every arrow fits between its ends."""
    gaps = [float(GAP_MIN)] * len(boxes)
    for box in boxes:
        box.lay()
    for arrow in sorted(arrows, key=lambda each: each.span[1] - each.span[0]):
        first, last = arrow.span
        room = sum(gaps[first:last]) + sum(box.height for box in boxes[first + 1 : last])
        gaps[last - 1] += max(0.0, arrow.height - room)
    top = float(PADDING)
    for box, gap in zip(boxes, gaps, strict=True):
        box.top = top
        top += box.height + gap


def _lay_lanes(arrows: Sequence[_Arrow]) -> list[float]:
    """Give each arrow the first lane that is free where it runs, short ones inside; widths of the lanes."""
    lanes: list[list[_Arrow]] = []
    for arrow in sorted(arrows, key=lambda each: (each.span[1] - each.span[0], each.span)):
        first, last = arrow.span
        free = (
            number
            for number, lane in enumerate(lanes)
            if all(last <= other.span[0] or first >= other.span[1] for other in lane)
        )
        arrow.lane = next(free, len(lanes))
        if arrow.lane == len(lanes):
            lanes.append([])
        lanes[arrow.lane].append(arrow)
    return [max(arrow.width for arrow in lane) for lane in lanes]


def _lay_ports(boxes: Sequence[_Box], sides: dict[bool, list[_Arrow]]) -> None:
    """Where arrows touch a box: in the order of their other ends, so that they cross little."""
    for number, box in enumerate(boxes):
        for arrows in sides.values():
            touching = [each for each in arrows if number in each.span]
            above = [each for each in touching if each.span[1] == number]
            below = [each for each in touching if each.span[0] == number]
            ordered = [
                *sorted(above, key=lambda each: -each.lane),
                *sorted(below, key=lambda each: each.lane),
            ]
            for at, arrow in enumerate(ordered, 1):
                y = box.top + box.height * at / (len(ordered) + 1)
                if arrow.start == number:
                    arrow.start_y = y
                else:
                    arrow.to_y = y


def _label(row: EdgeRow) -> str:
    return row.event if len(row.event) <= LABEL_LETTERS_MAX else f"{row.event[: LABEL_LETTERS_MAX - 1]}…"


def _title(row: EdgeRow) -> str:
    clauses = f" ({', '.join(row.edge.clauses)})" if row.edge is not None and row.edge.clauses else ""
    to = row.edge.to if row.edge is not None else ""
    return f"<title>{escape(f'{row.state}, {row.event}: {to}{clauses}')}</title>"


def _drawn_arrow(arrow: _Arrow, side: float, widths: Sequence[float], sign: int) -> Iterator[str]:
    """A line out of the box, along its lane and back, and the events beside the lane."""
    x = side + sign * (sum(widths[: arrow.lane]) + LANE_MIN / 2)
    bend = 6 if arrow.to_y > arrow.start_y else -6
    yield (
        f'<path class="arrow" marker-end="url(#tip)" d="M{side:.0f} {arrow.start_y:.1f}'
        f"H{x - 6 * sign:.1f}Q{x:.1f} {arrow.start_y:.1f} {x:.1f} {arrow.start_y + bend:.1f}"
        f"V{arrow.to_y - bend:.1f}Q{x:.1f} {arrow.to_y:.1f} {x - 6 * sign:.1f} {arrow.to_y:.1f}"
        f'H{side:.0f}"/>'
    )
    end = "start" if sign > 0 else "end"
    top = (arrow.start_y + arrow.to_y) / 2 - LINE * (len(arrow.rows) - 1) / 2 + 4
    for number, row in enumerate(arrow.rows):
        yield (
            f'<a href="#{row.anchor}">{_title(row)}<text text-anchor="{end}" x="{x + 5 * sign:.1f}" '
            f'y="{top + number * LINE:.1f}">{escape(_label(row))}</text></a>'
        )


def _drawn_box(machine: MachineSpec, box: _Box, left: float, width: float) -> Iterator[str]:
    """The state, its name, and each event that leaves it where it is."""
    state = machine.states[box.name]
    kind = "state" + " initial" * state.initial + " final" * state.final
    yield (
        f'<a href="#{anchor("state", box.name)}"><title>{escape(state.about)}</title>'
        f'<rect class="{kind}" x="{left:.0f}" y="{box.top:.1f}" width="{width:.0f}" '
        f'height="{box.height:.1f}" rx="6"/><text class="name" text-anchor="middle" '
        f'x="{left + width / 2:.1f}" y="{box.top + LINE * 1.2:.1f}">{escape(box.name)}</text></a>'
    )
    for number, row in enumerate(box.stays):
        yield (
            f'<a href="#{row.anchor}">{_title(row)}<text class="stays" text-anchor="middle" '
            f'x="{left + width / 2:.1f}" y="{box.top + LINE * (2.3 + number):.1f}">'
            f"↻ {escape(_label(row))}</text></a>"
        )
