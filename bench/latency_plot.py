"""The plot of the latency benchmark: what each way adds at one connection, and requests/s at 32."""

from collections.abc import Mapping

from bench.latency_report import Report
from bench.programs import DIRECT, GATEWAY
from bench.svg import COLOURS, drawing, line, place, text, title

_ROW, _LEFT, _WIDE, _GAP, _TOP = 24, 130, 250, 70, 50
_TICKS_US = (10.0, 100.0, 1000.0, 10000.0)
_TICKS_PER_S = (100.0, 1000.0, 10000.0, 100000.0)


def plot(report: Report) -> str:
    """Return the SVG; both axes are logarithmic."""
    ways = [way for way in report.ways if way != DIRECT]
    added = {way: report.figure(way, 1, "added_p50_us") for way in ways}
    per_s = {way: report.figure(way, 32, "per_s") for way in ways}
    names = [text(_LEFT - 10, _TOP + _ROW * (row + 0.5) + 4, way, "end") for row, way in enumerate(ways)]
    right = _LEFT + _WIDE + _GAP
    left_half = _bars(_LEFT, "added p50 at 1 connection, µs", _TICKS_US, added)
    right_half = _bars(right, "requests/s at 32 connections", _TICKS_PER_S, per_s)
    height = _TOP + _ROW * len(ways) + 10
    return drawing(right + _WIDE + 50, height, "Added latency and throughput", names + left_half + right_half)


def _bars(left: float, words: str, ticks: tuple[float, ...], values: Mapping[str, float]) -> list[str]:
    parts = [title(left, 16, words)]
    for tick in ticks:
        x = left + _WIDE * place(tick, ticks[0], ticks[-1])
        parts.append(line(x, _TOP - 8, x, _TOP + _ROW * len(values)))
        parts.append(text(x, _TOP - 13, f"{tick:,.0f}", "middle", "small"))
    for row, (way, value) in enumerate(values.items()):
        y = _TOP + _ROW * row
        width = max(2.0, _WIDE * place(value, ticks[0], ticks[-1]))
        colour = COLOURS[0] if way.startswith(GATEWAY) else COLOURS[3]
        parts.append(
            f'<rect x="{left:.0f}" y="{y + 4}" width="{width:.0f}" height="{_ROW - 8}" fill="{colour}"/>'
        )
        parts.append(text(left + width + 5, y + _ROW / 2 + 4, f"{value:,.0f}"))
    return parts
