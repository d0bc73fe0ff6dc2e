"""The report on a database as one self-contained HTML page."""

from __future__ import annotations

import html
import itertools
from collections.abc import Mapping, Sequence

from tilewright.report.charts import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Axis, Box, Labels, frame
from tilewright.report.database_report import EMPTY, FINALS, DatabaseReport, Roofline, TaskReport
from tilewright.support.machine import rate_unit
from tilewright.tables import Table
from tilewright.timing import format_share

__all__ = ["page"]

_STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --faint: #6e7781; --line: #d0d7de; --paper: #ffffff; --mark: #0969da;
  --second: #bc4c00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --faint: #8b949e; --line: #30363d; --paper: #0d1117;
  --mark: #58a6ff; --second: #f0883e; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 68rem;
  margin: 2rem auto; padding: 0 1rem; overflow-wrap: break-word; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; border-top: 1px solid var(--line);
  padding-top: 1rem; } h3 { font-size: 1rem; margin-bottom: .3rem; }
table { border-collapse: collapse; margin: .5rem 0 1rem; display: block; overflow-x: auto; }
caption { text-align: left; color: var(--faint); white-space: nowrap; }
th, td { padding: .15rem 1.2rem .15rem 0; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap;
  vertical-align: baseline; } th { vertical-align: bottom; }
.name, .text { text-align: left; } .name { white-space: normal; }
.text { white-space: normal; overflow-wrap: anywhere; min-width: 12rem; }
[title] { text-decoration: underline dotted var(--faint); text-underline-offset: .2em; cursor: help; }
pre { background: color-mix(in srgb, var(--ink) 6%, transparent); padding: .6rem; overflow-x: auto; font-size: 12.5px;
  line-height: 1.35; } summary { cursor: pointer; color: var(--mark); } .faint { color: var(--faint); }
.charts { display: flex; flex-wrap: wrap; gap: 1rem 3rem; margin-bottom: 1rem; }
figure { margin: 0; max-width: 440px; } figcaption { color: var(--faint); font-size: 13px; }
svg { max-width: 100%; height: auto; } svg text { fill: var(--faint); font: 11px system-ui, sans-serif;
  paint-order: stroke; stroke: var(--paper); stroke-width: 3px; stroke-linejoin: round; }
a { color: var(--mark); } .up { font-size: .8rem; font-weight: normal; margin-left: .6rem; }
.axis { stroke: var(--line); } .curve { stroke: var(--mark); fill: none; stroke-width: 2; }
.dot { fill: var(--faint); opacity: .5; } .best { fill: var(--mark); } .roof { stroke: var(--second); fill: none;
  stroke-width: 1.5; }
@media (max-width: 60rem) { body { font-size: 14px; } table { font-size: 13px; } th, .name { white-space: normal; }
  th, td { padding-right: .5rem; } }
@media (max-width: 36rem) { body { padding: 0 .5rem; } table { font-size: 11px; } th, td { padding-right: .3rem; }
  td { white-space: normal; } .name, th { overflow-wrap: normal; } }
"""
#: anchor of the overview in the page
_OVERVIEW = "overview"
#: number of letters from which on cells are folded
_LONG = 40


def page(report: DatabaseReport) -> str:
    """Return the page, which refers to no other file or address."""
    title = f"Records in {html.escape(report.path)}"
    parts = [f"<h1>{title}</h1>"]
    if report.tasks:
        names = {name: target for target, name in report.short_targets.items()}
        targets = Table("targets in full", ("target", "in full"), tuple(names.items()))
        rows = [f"#{_anchor(number)}" for number in range(1, len(report.tasks) + 1)]
        parts += [f'<div id="{_OVERVIEW}">{_table(report.overview(), hints=names, links=rows)}</div>', _table(targets)]
    else:
        parts.append(f"<p>{html.escape(EMPTY)}</p>")
    parts += [_task(report, task, _anchor(number)) for number, task in enumerate(report.tasks, 1)]
    if report.times:
        parts += ["<h2>Where the time went</h2>", _table(report.time_table())]
    body = "\n".join(parts)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
        f'<meta name="viewport" content="width=device-width">\n<style>{_STYLE}</style>\n</head>\n'
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _anchor(number: int) -> str:
    """Return the anchor of the program in this row of the overview."""
    return f"program-{number}"


def _task(report: DatabaseReport, task: TaskReport, anchor: str) -> str:
    target = f'<span title="{html.escape(task.target)}">{html.escape(report.short_targets[task.target])}</span>'
    parts = [
        f'<h2 id="{anchor}">{html.escape(report.heading(task))} <a class="up" href="#{_OVERVIEW}">overview</a></h2>',
        f'<p class="faint">{target} · program {task.hash[:12]} · {task.facts}</p>',
    ]
    if task.remark:
        parts.append(f"<p>Not all can be shown: {html.escape(task.remark)}.</p>")
    if task.advice:
        parts.append(f"<p>Note: {html.escape(task.advice)}.</p>")
    charts = [_speed_chart(task)] if task.progress() else []
    if task.roofline is not None:
        charts.append(_roofline_chart(task.roofline))
    parts.append(f'<div class="charts">{"".join(charts)}</div>')
    parts += [_table(table) for table in task.tables()]
    parts += [_folded(title, text, is_open=number == 0) for number, (title, text) in enumerate(task.texts())]
    return "\n".join(parts)


def _folded(title: str, text: str, *, is_open: bool = False) -> str:
    opened = " open" if is_open else ""
    return f"<details{opened}><summary>{html.escape(title)}</summary><pre>{html.escape(text)}</pre></details>"


def _table(table: Table, *, hints: Mapping[str, str] | None = None, links: Sequence[str] = ()) -> str:
    """Return the table as HTML. `hints` are tooltips by cell text, `links` the anchors of the first cells."""
    kinds = [_kind(number, [row[number] for row in table.rows]) for number in range(len(table.columns))]

    def line(tag: str, cells: Sequence[str], link: str = "") -> str:
        texts = [_hinted(cell, hints or {}) for cell in cells]
        if link:
            texts[0] = f'<a href="{link}">{texts[0]}</a>'
        return "".join(f"<{tag}{kind}>{text}</{tag}>" for kind, text in zip(kinds, texts, strict=True))

    places = itertools.chain(links, itertools.repeat(""))
    head = line("th", table.columns)
    rows = "".join(f"<tr>{line('td', row, link)}</tr>" for row, link in zip(table.rows, places, strict=False))
    caption = f"<caption>{html.escape(table.title)}</caption>"
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _kind(number: int, cells: Sequence[str]) -> str:
    """Return the class attribute of a column: long cells are folded, and columns of numbers are aligned to the
    right."""
    if any(len(cell) > _LONG for cell in cells):
        return ' class="text"'
    is_name = number == 0 or any(cell and not cell[0].isdigit() for cell in cells)
    return ' class="name"' if is_name else ""


def _hinted(cell: str, hints: Mapping[str, str]) -> str:
    text = html.escape(cell)
    return f'<span title="{html.escape(hints[cell])}">{text}</span>' if cell in hints else text


def _figure(picture: str, caption: str) -> str:
    return f"<figure>{picture}<figcaption>{html.escape(caption)}</figcaption></figure>"


def _speed_chart(task: TaskReport) -> str:
    """Return a chart with a dot for each trial, and the best time so far as a line."""

    def speed(seconds: float) -> float:
        return (task.work.flops / 1e9 if task.work.flops else 1.0) / seconds

    measured = [(trial.number, speed(trial.seconds)) for trial in task.trials if trial.seconds is not None]
    x = Axis([len(task.trials)], LEFT, WIDTH - RIGHT, powers=False, counts=True)
    shown = [value for _, value in measured] + ([speed(task.best_seconds)] if task.best_seconds else [])
    y = Axis(shown, HEIGHT - BOTTOM, TOP + 14, powers=False)
    inside = [f'<circle class="dot" cx="{x(n):.1f}" cy="{y(v):.1f}" r="2"/>' for n, v in measured]
    path, height = "", 0.0
    for trial, seconds in task.progress():
        at = f"{x(trial.number):.1f}"
        path += f"M{at},{y(speed(seconds)):.1f}" if not path else f"H{at}V{y(speed(seconds)):.1f}"
        height = y(speed(seconds))
    inside.append(f'<path class="curve" d="{path}H{x(len(task.trials)):.1f}"/>')
    unit = rate_unit(task.work.dtype) if task.work.flops else "calls per second"
    caption = f"Speed of the trials in {unit}; the line is the best so far"
    place = x(task.progress()[-1][0].number)
    if task.had_finals and task.best_seconds is not None:
        caption += f"; the large dot is the best, {FINALS}"
        place, height = x(task.winner.number if task.winner else 0), y(speed(task.best_seconds))
    inside.append(f'<circle class="best" cx="{place:.1f}" cy="{height:.1f}" r="4"/>')
    return _figure(frame(x, y, ("trial", unit), inside, caption), caption)


def _roofline_chart(roofline: Roofline) -> str:
    """Return a chart with the measured limits as lines, and the best record as a dot."""
    work, roofs = roofline.work, roofline.roofs
    peak = roofs.peaks.get(work.dtype, roofs.peaks["float32"])
    knees = [peak / level.bandwidth for level in roofs.levels]
    intensities = [min(*knees, roofline.intensity) / 3, max(*knees, roofline.intensity) * 3]
    rates = [min(roofline.rate, intensities[0] * roofs.levels[-1].bandwidth), peak]
    x = Axis(intensities, LEFT, WIDTH - RIGHT, powers=True)
    y = Axis(rates, HEIGHT - BOTTOM, TOP + 14, powers=True)
    best = (x(roofline.intensity), y(roofline.rate))
    labels = Labels("operations per second", [Box.around(*best, 6)])
    inside, slopes = [], []
    for level, knee in zip(roofs.levels, knees, strict=True):
        start = max(intensities[0], 10**y.first / level.bandwidth)
        points = [(x(i), y(r)) for i, r in ((start, start * level.bandwidth), (knee, peak), (intensities[1], peak))]
        path = "L".join(f"{a:.1f},{b:.1f}" for a, b in points)
        inside.append(f'<path class="roof" d="M{path}"><title>{html.escape(level.name)}</title></path>')
        labels.avoid(points)
        slopes.append((level.name, points[:2]))
    inside.append(labels.put(roofs.arithmetic, [(x(intensities[1]), y(peak) - 5, "end")]))
    inside += [labels.put(name, _beside(*ends)) for name, ends in slopes]
    inside.append(f'<circle class="best" cx="{best[0]:.1f}" cy="{best[1]:.1f}" r="5"/>')
    share = format_share(roofline.share, work)
    where = (
        f"this machine, {roofs.threads} thread{'' if roofs.threads == 1 else 's'}" if roofs.threads else "the device"
    )
    caption = f"The best record against the limits of {where}: {share} of {roofline.binding.name}"
    return _figure(frame(x, y, ("operations per byte", labels.title), inside, caption), caption)


def _beside(low: tuple[float, float], high: tuple[float, float]) -> list[tuple[float, float, str]]:
    """Return candidate positions for the label of a rising line: above rather than below it, the middle first."""
    places = []
    for share in (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8, 0.1, 0.9, 0.0, 1.0):
        a, b = (start + share * (end - start) for start, end in zip(low, high, strict=True))
        places += [(a - 5, b - 3, "end"), (a + 6, b + 9, "start")]
    return places
