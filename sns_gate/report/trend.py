"""How cases went over many checks, at a terminal and as one page."""

from __future__ import annotations

import html
from collections.abc import Sequence
from types import ModuleType

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sns_gate.history import Point, Trend
from sns_gate.plain import plain
from sns_gate.report.html.page import asset
from sns_gate.report.words import counted, duration

_BARS = "▁▂▃▄▅▆▇█"
_SHOWN, _SHORT_COMMIT = 40, 9


def render(trends: Sequence[Trend], console: Console) -> None:
    """Print a row a case and kind of machine, then where times changed."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("case", overflow="fold")
    table.add_column("on", overflow="fold")
    for title in ("checks", "last speedup"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("times at tier A, oldest first", no_wrap=True)
    for trend in trends:
        last = trend.points[-1]
        speedup = f"{last.speedup:.4f} [{last.low:.4f}, {last.high:.4f}]"
        table.add_row(
            Text(plain(trend.case)), Text(plain(trend.machine)), str(len(trend.points)), speedup,
            _drawn(trend.times, console),
        )  # fmt: skip
    console.print(table)
    for trend in trends:
        for index in trend.changes:
            console.print(Text(f"{plain(trend.case)}: {change(trend, index)}"))
    if not any(trend.times for trend in trends):
        text = "no check reached tier A, so no times can be compared over checks; see --clocks"
        console.print(Text(text, "dim"))


def change(trend: Trend, index: int) -> str:
    """One change of level in words."""
    times = trend.times
    borders = (0, *trend.changes, len(times))
    place = borders.index(index)
    before = _mean([p.candidate_ms for p in times[borders[place - 1] : index]])
    after = _mean([p.candidate_ms for p in times[index : borders[place + 1]]])
    return (
        f"from {times[index].commit[:_SHORT_COMMIT]} on, {duration(before)} became "
        f"{duration(after)} ({100 * (after / before - 1):+.1f}%)"
    )


def page(trends: Sequence[Trend]) -> str:
    """One page that opens without a network: a plot a case, tier A times and all speedups."""
    from plotly import graph_objects, io, subplots

    parts = []
    for number, trend in enumerate(trends):
        times = trend.times
        titles = [*(["times at tier A, ms"] if times else []), "speedup over its own baseline"]
        drawn = subplots.make_subplots(rows=1, cols=len(titles), subplot_titles=titles)
        if times:
            line = _line(graph_objects, times, [p.candidate_ms for p in times])
            drawn.add_trace(line, row=1, col=1)
            drawn.update_xaxes(_commits(times), row=1, col=1)
        for index in trend.changes:
            drawn.add_vline(x=index - 0.5, line_dash="dot", line_color=_GREY, row=1, col=1)
        intervals = {
            "type": "data", "symmetric": False, "thickness": 1,
            "array": [p.high - p.speedup for p in trend.points],
            "arrayminus": [p.speedup - p.low for p in trend.points],
        }  # fmt: skip
        values = [p.speedup for p in trend.points]
        speedups = _line(graph_objects, trend.points, values, error_y=intervals)
        drawn.add_trace(speedups, row=1, col=len(titles))
        drawn.update_xaxes(_commits(trend.points), row=1, col=len(titles))
        drawn.update_xaxes(showgrid=False, linecolor=_FAINT, zeroline=False)
        drawn.update_yaxes(gridcolor=_FAINT, zeroline=False)
        drawn.update_layout(
            height=300, showlegend=False, font={"color": _GREY}, margin={"t": 40, "l": 60, "r": 20},
            paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)",
        )  # fmt: skip
        plot = io.to_html(drawn, full_html=False, include_plotlyjs=number == 0)
        changes = "".join(f"<li>{html.escape(change(trend, i))}</li>" for i in trend.changes)
        parts.append(
            f"<section><h2>{html.escape(plain(trend.case))}</h2>"
            f'<p class="quiet">{html.escape(plain(trend.machine))}, '
            f"{counted(len(trend.points), 'check')}</p>"
            f"<ul>{changes}</ul>{plot}</section>"
        )
    return _PAGE.format(style=asset("page.css"), body="\n".join(parts))


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>sns-gate: history</title>
<style>{style}</style></head>
<body><header><p class="brand quiet">sns-gate</p><h1>History</h1>
<p>Only tier A times may be compared between checks. No number here is ever a baseline.</p></header>
<main>{body}</main>
</body></html>
"""
#: Read on the page's light ground and on its dark one.
_GREY, _FAINT = "#7a828e", "rgba(128,136,148,0.25)"
_NAMED = 8


def _commits(points: Sequence[Point]) -> dict[str, object]:
    """An axis that names some of its commits."""
    places = range(0, len(points), -(-len(points) // _NAMED))
    names = [html.escape(points[place].commit[:_SHORT_COMMIT]) for place in places]
    return {"tickmode": "array", "tickvals": list(places), "ticktext": names}


def _line(
    objects: ModuleType, points: Sequence[Point], values: Sequence[float], **more: object
) -> object:
    told = [f"{p.commit[:_SHORT_COMMIT]} {p.started_at} {p.verdict}" for p in points]
    return objects.Scatter(
        x=list(range(len(points))), y=list(values), mode="lines+markers",
        text=[html.escape(one) for one in told], hovertemplate="%{text}<br>%{y:.5g}<extra></extra>",
        **more,
    )  # fmt: skip


def _drawn(times: Sequence[Point], console: Console) -> Text:
    """The last times as bars between the smallest and the largest of them."""
    values = [p.candidate_ms for p in times[-_SHOWN:]]
    if not values:
        return Text("")
    low, high = min(values), max(values)
    span = f"{duration(low)} to {duration(high)}"
    if not (console.encoding or "").lower().startswith("utf"):
        return Text(span)
    steps = [round((v - low) / ((high - low) or 1) * (len(_BARS) - 1)) for v in values]
    return Text("".join(_BARS[step] for step in steps) + f" {span}")


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
