"""Execution charts: when each task was in which phase, stock above ours on one scale, as one HTML page.

The page loads no other files, follows the reader's light or dark scheme, and fits a phone.
"""

import math
from html import escape

PHASES = {
    "map": "map",
    "spill": "map: last spill and merge",
    "shuffle": "shuffle",
    "sort": "sort",
    "reduce": "reduce",
}
"""In the order of the legend. After its last record a map task sorts and spills the rest, and merges its spills
unless the merge is deferred. Hadoop reports both as one time; ActiveSort's figures call it the sort of the map."""

_STYLE = """
:root { color-scheme: light dark; --ink: #1c1f24; --faint: #6b7280; --paper: #fff; --line: #d9dde3;
  --map: #0072b2; --spill: #d55e00; --shuffle: #56b4e9; --sort: #e69f00; --reduce: #009e73; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8eb; --faint: #9aa2ad; --paper: #15181c; --line: #353b44; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 16px; max-width: 1200px; background: var(--paper); color: var(--ink);
  font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.35rem; margin: 0 0 4px; } h2 { font-size: 1.05rem; margin: 20px 0 6px; }
p { margin: 4px 0; } .note { color: var(--faint); font-size: .87rem; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 16px; margin: 12px 0 0; padding: 0; list-style: none; font-size: .87rem; }
.legend i { display: inline-block; width: 12px; height: 12px; border-radius: 2px; margin-right: 6px; vertical-align: -1px; }
.row { display: flex; align-items: center; height: 15px; }
.row b { flex: 0 0 42px; font-weight: 400; font-size: 11px; line-height: 1; color: var(--faint); }
.track { position: relative; flex: 1; height: 15px; }
.track i { position: absolute; top: 2px; bottom: 2px; min-width: 1px; }
.plot { position: relative; }
.grid { position: absolute; left: 42px; right: 0; top: 0; bottom: 0; }
.grid i { position: absolute; top: 0; bottom: 0; border-left: 1px solid var(--line); }
.axis { position: relative; margin-left: 42px; height: 20px; font-size: 11px; color: var(--faint); }
.axis span { position: absolute; transform: translateX(-50%); white-space: nowrap; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .87rem; margin-top: 6px; }
th, td { padding: 3px 14px 3px 0; text-align: right; white-space: nowrap; }
th { white-space: normal; vertical-align: bottom; }
th:first-child, td:first-child { text-align: left; }
thead th { border-bottom: 1px solid var(--line); font-weight: 600; }
"""


def _step(seconds):
    """A round distance that cuts `seconds` into four to ten."""
    power = 10 ** math.floor(math.log10(seconds))
    ratio = seconds / power
    return power / 5 if ratio < 2 else power / 2 if ratio < 5 else power


def _percent(ms, all_ms):
    return f"{100 * ms / all_ms:.3f}%"


def _plot(title, history, all_ms, step_s):
    marks = [round(index * step_s, 6) for index in range(int(all_ms / 1000 / step_s) + 1)]
    grid = "".join(f'<i style="left:{_percent(1000 * mark, all_ms)}"></i>' for mark in marks)
    axis = "".join(f'<span style="left:{_percent(1000 * mark, all_ms)}">{mark:g}</span>' for mark in marks[1:])
    rows = []
    for attempt in sorted(history.attempts, key=lambda a: (a.name[0] == "r", a.bars[0].start_ms, a.name)):
        bars = "".join(
            f'<i style="left:{_percent(bar.start_ms, all_ms)};width:{_percent(bar.end_ms - bar.start_ms, all_ms)};'
            f'background:var(--{bar.phase})" title="{escape(attempt.name)}: {PHASES[bar.phase]} '
            f'{bar.start_ms / 1000:.1f} to {bar.end_ms / 1000:.1f} s"></i>'
            for bar in attempt.bars
        )
        rows.append(f'<div class="row"><b>{escape(attempt.name)}</b><div class="track">{bars}</div></div>')
    return (
        f"<h2>{escape(title)}: {history.elapsed_s:.1f} s</h2>\n"
        f'<div class="plot"><div class="grid">{grid}</div>\n' + "\n".join(rows) + "</div>\n"
        f'<div class="axis"><span style="left:0"></span>{axis}</div>\n'
    )


def page(title, note, histories):
    """The page; `histories`: pairs of a heading and a `history.History`, drawn one below the other."""
    all_ms = max(1, *(round(one.elapsed_s * 1000) for _, one in histories))
    step_s = _step(all_ms / 1000)
    legend = "".join(
        f'<li><i style="background:var(--{phase})"></i>{name}</li>' for phase, name in PHASES.items()
    )
    plots = "".join(_plot(heading, one, all_ms, step_s) for heading, one in histories)
    head = "".join(f"<th>{escape(heading)}</th>" for heading, _ in histories)
    rows = "".join(
        f"<tr><td>{name}</td>" + "".join(f"<td>{one.phase_s(phase):.1f}</td>" for _, one in histories) + "</tr>"
        for phase, name in PHASES.items()
    )
    elapsed = "".join(f"<td>{one.elapsed_s:.1f}</td>" for _, one in histories)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{escape(title)}</h1>
<p>{escape(note)}</p>
<ul class="legend">{legend}</ul>
{plots}<p class="note">Seconds since the job was submitted; m is a map task, r a reduce task; only attempts that succeeded.</p>
<h2>Seconds in each phase, all tasks together</h2>
<div class="scroll"><table><thead><tr><th>phase</th>{head}</tr></thead>
<tbody>{rows}<tr><td>elapsed</td>{elapsed}</tr></tbody></table></div>
</body>
</html>
"""
