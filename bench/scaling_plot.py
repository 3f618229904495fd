"""The plot of the scaling benchmark: CPU per request over the number of each thing, one line for each."""

from collections.abc import Mapping, Sequence

from bench.svg import COLOURS, drawing, line, place, text, title

_LEFT, _TOP, _WIDE, _HIGH, _LEGEND = 60, 40, 480, 220, 150


def plot(counts: Sequence[int], figures: Mapping[str, Sequence[float]]) -> str:
    """Return the SVG; the counts are logarithmic, the CPU time starts at zero."""
    top = _ceiling(max(max(costs) for costs in figures.values()))
    parts = [title(_LEFT, 20, "CPU per request, µs"), *_grid(counts, top)]
    for index, (what, costs) in enumerate(figures.items()):
        points = [(_x(count, counts), _y(cost, top)) for count, cost in zip(counts, costs, strict=True)]
        parts += _series(what, points, index)
    return drawing(_LEFT + _WIDE + _LEGEND, _TOP + _HIGH + 40, "CPU per request by number", parts)


def _ceiling(cost: float) -> int:
    """Return the next multiple of 200 above, for four steps of whole fifties."""
    return 200 * (int(cost) // 200 + 1)


def _x(count: int, counts: Sequence[int]) -> float:
    return _LEFT + _WIDE * place(count, counts[0], counts[-1])


def _y(cost: float, top: float) -> float:
    return _TOP + _HIGH * (1 - cost / top)


def _grid(counts: Sequence[int], top: int) -> list[str]:
    parts = []
    for tick in (0, top // 4, top // 2, top * 3 // 4, top):
        y = _y(tick, top)
        parts += [line(_LEFT, y, _LEFT + _WIDE, y), text(_LEFT - 8, y + 4, str(tick), "end")]
    labels = [text(_x(count, counts), _TOP + _HIGH + 20, f"{count:,}", "middle") for count in counts]
    return parts + labels


def _series(what: str, points: Sequence[tuple[float, float]], index: int) -> list[str]:
    colour = COLOURS[index]
    path = " ".join(f"{x:.0f},{y:.0f}" for x, y in points)
    y = _TOP + 20 * index
    return [
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>',
        *(f'<circle cx="{x:.0f}" cy="{y:.0f}" r="4" fill="{colour}"/>' for x, y in points),
        f'<circle cx="{_LEFT + _WIDE + 20}" cy="{y}" r="5" fill="{colour}"/>',
        text(_LEFT + _WIDE + 30, y + 4, what),
    ]
