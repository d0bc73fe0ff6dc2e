"""A report on a file of records as one page of HTML, with all that it needs inside."""

from __future__ import annotations

import html

from tilewright.charts import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Axis, frame
from tilewright.database_report import EMPTY, FINALS, DatabaseReport, Roofline, TaskReport
from tilewright.machine import rate_unit
from tilewright.tables import Table
from tilewright.timing import format_share

__all__ = ["page"]

_STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --faint: #6e7781; --line: #d0d7de; --paper: #ffffff; --mark: #0969da;
  --second: #bc4c00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --faint: #8b949e; --line: #30363d; --paper: #0d1117;
  --mark: #58a6ff; --second: #f0883e; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 62rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; border-top: 1px solid var(--line);
  padding-top: 1rem; } h3 { font-size: 1rem; margin-bottom: .3rem; }
table { border-collapse: collapse; margin: .5rem 0; display: block; overflow-x: auto; }
caption { text-align: left; color: var(--faint); } th, td { padding: .15rem .8rem .15rem 0; text-align: right;
  border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child, .texts td { text-align: left; }
pre { background: color-mix(in srgb, var(--ink) 6%, transparent); padding: .6rem; overflow-x: auto; font-size: 12.5px;
  line-height: 1.35; } summary { cursor: pointer; color: var(--mark); } .faint { color: var(--faint); }
.charts { display: flex; flex-wrap: wrap; gap: 1rem; } figure { margin: 0; } figcaption { color: var(--faint);
  font-size: 13px; } svg { max-width: 100%; height: auto; } svg text { fill: var(--faint); font: 11px system-ui,
  sans-serif; } .axis { stroke: var(--line); } .curve { stroke: var(--mark); fill: none; stroke-width: 2; }
.dot { fill: var(--faint); opacity: .5; } .best { fill: var(--mark); } .roof { stroke: var(--second); fill: none;
  stroke-width: 1.5; }
"""


def page(report: DatabaseReport) -> str:
    """The page. It names no other file and no other place."""
    title = f"Records in {html.escape(report.path)}"
    parts = [f"<h1>{title}</h1>"]
    if report.tasks:
        parts.append(_table(report.overview()))
    else:
        parts.append(f"<p>{html.escape(EMPTY)}</p>")
    parts += [_task(task) for task in report.tasks]
    if report.times:
        parts += ["<h2>Where the time went</h2>", _table(report.time_table())]
    body = "\n".join(parts)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
        f'<meta name="viewport" content="width=device-width">\n<style>{_STYLE}</style>\n</head>\n'
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _task(task: TaskReport) -> str:
    parts = [
        f"<h2>{html.escape(task.name)}</h2>",
        f'<p class="faint">{html.escape(task.target)} · program {task.hash[:12]} · {task.facts}</p>',
    ]
    if task.remark:
        parts.append(f"<p>Not all can be shown: {html.escape(task.remark)}.</p>")
    charts = [_speed_chart(task)] if task.progress() else []
    if task.roofline is not None:
        charts.append(_roofline_chart(task.roofline))
    parts.append(f'<div class="charts">{"".join(charts)}</div>')
    parts += [_table(table, texts=table.columns[-1] == "first message") for table in task.tables()]
    parts += [_folded(title, text, is_open=number == 0) for number, (title, text) in enumerate(task.texts())]
    return "\n".join(parts)


def _folded(title: str, text: str, *, is_open: bool = False) -> str:
    opened = " open" if is_open else ""
    return f"<details{opened}><summary>{html.escape(title)}</summary><pre>{html.escape(text)}</pre></details>"


def _table(table: Table, *, texts: bool = False) -> str:
    text = table._repr_html_()
    return text.replace("<table>", '<table class="texts">', 1) if texts else text


def _figure(picture: str, caption: str) -> str:
    return f"<figure>{picture}<figcaption>{html.escape(caption)}</figcaption></figure>"


def _speed_chart(task: TaskReport) -> str:
    """Every trial as a dot, the best so far as a line."""

    def speed(seconds: float) -> float:
        return (task.work.flops / 1e9 if task.work.flops else 1.0) / seconds

    measured = [(trial.number, speed(trial.seconds)) for trial in task.trials if trial.seconds is not None]
    x = Axis([len(task.trials)], LEFT, WIDTH - RIGHT, powers=False)
    shown = [value for _, value in measured] + ([speed(task.best_seconds)] if task.best_seconds else [])
    y = Axis(shown, HEIGHT - BOTTOM, TOP + 14, powers=False)
    inside = [f'<circle class="dot" cx="{x(n):.1f}" cy="{y(v):.1f}" r="2"/>' for n, v in measured]
    path, height = "", 0.0
    for trial, seconds in task.progress():
        place = f"{x(trial.number):.1f}"
        path += f"M{place},{y(speed(seconds)):.1f}" if not path else f"H{place}V{y(speed(seconds)):.1f}"
        height = y(speed(seconds))
    inside.append(f'<path class="curve" d="{path}H{x(len(task.trials)):.1f}"/>')
    unit = rate_unit(task.work.dtype) if task.work.flops else "calls per second"
    caption = f"Speed of the trials in {unit}; the line is the best so far"
    last = task.progress()[-1][0]
    if task.had_finals and task.best_seconds is not None:
        caption += f"; the large dot is the best, {FINALS}"
        last, height = task.winner or last, y(speed(task.best_seconds))
    inside.append(f'<circle class="best" cx="{x(last.number):.1f}" cy="{height:.1f}" r="4"/>')
    return _figure(frame(x, y, ("trial", unit), inside, caption), caption)


def _roofline_chart(roofline: Roofline) -> str:
    """The measured limits as lines, the best record as a dot."""
    work, roofs = roofline.work, roofline.roofs
    peak = roofs.peaks.get(work.dtype, roofs.peaks["float32"])
    knees = [peak / level.bandwidth for level in roofs.levels]
    intensities = [min(*knees, roofline.intensity) / 3, max(*knees, roofline.intensity) * 3]
    rates = [min(roofline.rate, intensities[0] * roofs.levels[-1].bandwidth), peak]
    x = Axis(intensities, LEFT, WIDTH - RIGHT, powers=True)
    y = Axis(rates, HEIGHT - BOTTOM, TOP + 14, powers=True)
    inside = []
    for level, knee in zip(roofs.levels, knees, strict=True):
        start = max(intensities[0], 10**y.first / level.bandwidth)
        points = [(start, start * level.bandwidth), (knee, peak), (intensities[1], peak)]
        path = "L".join(f"{x(i):.1f},{y(r):.1f}" for i, r in points)
        inside.append(f'<path class="roof" d="M{path}"><title>{html.escape(level.name)}</title></path>')
        place = f'x="{x(knee):.1f}" y="{y(peak) - 4:.1f}"'
        inside.append(f'<text {place} text-anchor="end">{html.escape(level.name)}</text>')
    inside.append(f'<circle class="best" cx="{x(roofline.intensity):.1f}" cy="{y(roofline.rate):.1f}" r="5"/>')
    share = format_share(roofline.share, work)
    caption = (
        f"The best record against the limits of this machine, {roofs.threads} thread"
        f"{'' if roofs.threads == 1 else 's'}: {share} of {roofline.binding.name}"
    )
    return _figure(frame(x, y, ("operations per byte", "operations per second"), inside, caption), caption)
