"""The geometry of the chart of throughput over time. Pure: numbers in, numbers out; the template draws them as SVG."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bulk.report.record import OUTCOMES, Timeline
from bulk.report.render.formatting import duration

WIDTH, HEIGHT = 960.0, 240.0
LEFT, RIGHT, TOP, BOTTOM = 56.0, 12.0, 12.0, 30.0
"""Of the drawing, and its margins for the axes (user units of the SVG)."""


@dataclass(frozen=True, slots=True)
class Block:
    """One outcome's part of one bin: a rectangle and what it says when pointed at."""

    kind: str
    x: float
    y: float
    width: float
    height: float
    says: str


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark of an axis: where, and its words."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Chart:
    """Everything to draw.

    Attributes:
        breaks: where the run was resumed (x).
        kinds: the outcomes that occur, for the legend.
        peak: most items that ended in a bin, per second.
    """

    blocks: tuple[Block, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    breaks: tuple[float, ...]
    kinds: tuple[str, ...]
    peak: float

    @property
    def floor(self) -> float:
        """The y of zero."""
        return HEIGHT - BOTTOM


def draw(timeline: Timeline | None) -> Chart | None:
    """The chart of `timeline`; None where there is nothing to see (no item ended, or all in one moment)."""
    if timeline is None or len(timeline.bins) < 2 or not any(map(any, timeline.bins)):
        return None
    bins, bin_s = timeline.bins, timeline.bin_s
    total_s = bin_s * len(bins)
    peak = max(sum(each) for each in bins) / bin_s
    y_step = _nice(peak / 4)
    top = y_step * math.ceil(peak / y_step - 1e-9)
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    bin_wide, high_per_item = wide / len(bins), high / (top * bin_s)
    blocks = tuple(
        block
        for place, each in enumerate(bins)
        for block in _column(each, LEFT + bin_wide * place, bin_wide, high_per_item, place * bin_s)
    )
    x_step = _nice_time(total_s / 6)
    return Chart(
        blocks=blocks,
        x_ticks=tuple(
            Tick(round(LEFT + wide * place * x_step / total_s, 2), duration(place * x_step))
            for place in range(int(total_s / x_step + 1e-9) + 1)
        ),
        y_ticks=tuple(
            Tick(round(HEIGHT - BOTTOM - high * place * y_step / top, 2), _number(place * y_step))
            for place in range(round(top / y_step) + 1)
        ),
        breaks=tuple(round(LEFT + wide * min(1.0, at / total_s), 2) for at in timeline.breaks_s),
        kinds=tuple(kind for place, kind in enumerate(OUTCOMES) if any(each[place] for each in bins)),
        peak=peak,
    )


def _column(counts: Sequence[int], x: float, wide: float, high_per_item: float, start_s: float) -> list[Block]:
    blocks, y = [], HEIGHT - BOTTOM
    for kind, number in zip(OUTCOMES, counts, strict=True):
        if number:
            high = number * high_per_item
            y -= high
            says = f"{number:,} {kind} at {duration(start_s)}"
            gap = min(1.0, wide * 0.12)
            blocks.append(Block(kind, round(x, 2), round(y, 2), round(wide - gap, 2), round(max(high, 0.4), 2), says))
    return blocks


def _nice(least: float) -> float:
    """1, 2 or 5 times a power of ten, not below `least` (> 0)."""
    power: float = 10.0 ** math.floor(math.log10(least))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least * 0.999_999)


def _nice_time(least_s: float) -> float:
    """A step for an axis of time that people count in (seconds)."""
    if least_s < 1:
        return _nice(least_s)
    for step in (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400):
        if step >= least_s:
            return float(step)
    return 86_400 * _nice(least_s / 86_400)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:g}"
