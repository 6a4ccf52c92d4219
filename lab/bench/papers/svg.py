"""Charts as SVG: lines over a logarithmic axis of sizes, lines over time, bars on a logarithmic scale, points, heat maps."""

import math
from html import escape

WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 50, 60
"""Room for axes and legend."""
COLOURS = ("#0072b2", "#56b4e9", "#d55e00", "#e69f00", "#009e73", "#cc79a7", "#000000", "#999999")
"""Tell apart for most eyes (Okabe and Ito)."""
PAPER, OURS = "#999999", "#0072b2"


def lines(title, axes, series):
    """A line for each of `series`: its name, whether it is dashed, and its points, ascending and above 0."""
    points = [point for _, _, points in series for point in points]
    ticks = sorted({x for x, _ in points})
    x_min, x_max = (ticks[0], ticks[-1]) if len(ticks) > 1 else (ticks[0] / 2, ticks[0] * 2) if ticks else (1, 2)
    y_step, y_max = _scale([y for _, y in points])

    def x(value):
        return LEFT + math.log(value / x_min) / math.log(x_max / x_min) * (WIDTH - LEFT - RIGHT)

    def y(value):
        return HEIGHT - BOTTOM - value / y_max * (HEIGHT - TOP - BOTTOM)

    svg = _open(title, HEIGHT + 18 * len(series))
    svg += _levels(y, y_max, y_step)
    svg += _ticks(x, y(0), ticks)
    svg.append(_line((LEFT, y(0)), (WIDTH - RIGHT, y(0)), "#333333"))
    svg += _axes(axes)
    for index, (name, dashed, points) in enumerate(series):
        colour = COLOURS[index % len(COLOURS)]
        dash = ' stroke-dasharray="6 4"' if dashed else ""
        path = " ".join(f"{x(at):.1f},{y(value):.1f}" for at, value in points)
        svg.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        svg += [f'<circle cx="{x(at):.1f}" cy="{y(value):.1f}" r="3" fill="{colour}"/>' for at, value in points]
        at = HEIGHT + 18 * index
        svg.append(f'<path d="M{LEFT} {at} h36" stroke="{colour}" stroke-width="2"{dash}/>')
        svg.append(_text((LEFT + 44, at + 4), "start", name))
    return _whole(svg)


def bars(title, unit, figures):
    """A bar for each of `figures`: its name, the figure, and whether it is the paper's. A logarithmic scale has no 0."""
    row, names, room = 26, 290, WIDTH - 290 - 90
    figures = [one for one in figures if one[1] > 0]
    bottom = TOP + row * len(figures)
    svg = _open(title, bottom + BOTTOM)
    if figures:
        least = math.floor(math.log10(min(value for _, value, _ in figures)))
        most = max(math.ceil(math.log10(max(value for _, value, _ in figures))), least + 1)

        def x(value):
            return names + (math.log10(value) - least) / (most - least) * room

        for power in range(least, most + 1):
            at = x(10.0**power)
            svg.append(_line((at, TOP), (at, bottom), "#dddddd"))
            svg.append(_text((at, bottom + 18), "middle", number(10.0**power)))
    for index, (name, value, paper) in enumerate(figures):
        at = TOP + row * index
        svg.append(_text((names - 8, at + 17), "end", name))
        wide = max(x(value) - names, 1)
        svg.append(
            f'<rect x="{names}" y="{at + 4:.1f}" width="{wide:.1f}" height="{row - 8}" fill="{PAPER if paper else OURS}"/>'
        )
        svg.append(_text((x(value) + 6, at + 17), "start", number(value)))
    caption = f"{unit} (logarithmic; grey: the paper's, blue: ours)"
    svg.append(_text((names + room / 2, bottom + 42), "middle", caption))
    return _whole(svg)


def plane(title, axes, series, joined):
    """Squares at the points of `series`, or lines that join them, on linear axes from 0. `series`: names and points."""
    points = [point for _, points in series for point in points]
    x_step, x_max = _scale([x for x, _ in points])
    y_step, y_max = _scale([y for _, y in points])

    def x(value):
        return LEFT + value / x_max * (WIDTH - LEFT - RIGHT)

    def y(value):
        return HEIGHT - BOTTOM - value / y_max * (HEIGHT - TOP - BOTTOM)

    svg = _open(title, HEIGHT + 18 * len(series))
    svg += _levels(y, y_max, y_step)
    svg += _ticks(x, y(0), [index * x_step for index in range(round(x_max / x_step) + 1)])
    svg += _axes(axes)
    for index, (name, points) in enumerate(series):
        # Blue and vermilion are the first two that differ most.
        colour = COLOURS[(index if joined else 2 * index) % len(COLOURS)]
        if joined:
            path = "".join(f"{'L' if n else 'M'}{x(at):.1f} {y(value):.1f}" for n, (at, value) in enumerate(points))
            drawn = f'fill="none" stroke="{colour}" stroke-width="2"'
        else:
            path = "".join(f"M{x(at):.1f} {y(value) - 2:.1f}h2v2h-2z" for at, value in points)
            drawn = f'fill="{colour}" fill-opacity="0.7"'
        svg.append(f'<path d="{path}" {drawn}/>')
        at = HEIGHT + 18 * index
        svg.append(f'<rect x="{LEFT}" y="{at - 5:.1f}" width="10" height="10" fill="{colour}"/>')
        svg.append(_text((LEFT + 18, at + 4), "start", name))
    return _whole(svg)


def heat(title, rows, columns, axes, tables):
    """Tables side by side, each a name and figures by row, then by column; darker where a figure is larger. A cell that is
    None is left open."""
    row, gap, head = 40, 20, 30
    wide = (WIDTH - LEFT - RIGHT - gap * len(tables)) / max(len(tables), 1)
    cell = wide / max(len(columns), 1)
    bottom = TOP + head + row * len(rows)
    svg = _open(title, bottom + BOTTOM)
    svg.append(_text((LEFT - 8, TOP + head - 8), "end", axes[1]))
    svg += [_text((LEFT - 8, TOP + head + row * (index + 0.6)), "end", name) for index, name in enumerate(rows)]
    for place, (name, cells) in enumerate(tables):
        left = LEFT + (wide + gap) * place
        svg.append(_text((left + wide / 2, TOP + head - 8), "middle", name))
        svg += [_text((left + cell * (index + 0.5), bottom + 18), "middle", name) for index, name in enumerate(columns)]
        every = [value for one in cells for value in one if value is not None]
        for r, one in enumerate(cells):
            for c, value in enumerate(one):
                x, y = left + cell * c, TOP + head + row * r
                svg.append(
                    f'<rect x="{x:.1f}" y="{y:.1f}" width="{cell:.1f}" height="{row}" fill="{_fill(value, every)}" stroke="#dddddd"/>'
                )
                svg.append(_text((x + cell / 2, y + row * 0.6), "middle", "-" if value is None else number(value)))
    svg.append(_text(((LEFT + WIDTH - RIGHT) / 2, bottom + 42), "middle", axes[0]))
    return _whole(svg)


def _fill(value, every):
    """From white for the least figure to the vermilion of the lines for the largest."""
    if value is None:
        return "none"
    least, most = min(every), max(every)
    share = (value - least) / (most - least) if most > least else 0
    return "rgb({},{},{})".format(*(math.floor(255 - (255 - part) * share * 0.8 + 0.5) for part in (213, 94, 0)))


def _scale(values):
    """A round step, and a multiple of it that no figure is above."""
    most = max(values, default=0)
    step = _step(most) if most > 0 else 1
    return step, max(math.ceil(most / step), 1) * step


def _step(most):
    """A round distance that cuts `most` into four to ten."""
    power = 10.0 ** math.floor(math.log10(most))
    ratio = most / power
    return power / 5 if ratio < 2 else power / 2 if ratio < 5 else power


def _open(title, height):
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="13">',
        '<rect width="100%" height="100%" fill="white"/>',
        f"<title>{_escape(title)}</title>",
        f'<text x="{WIDTH / 2:.1f}" y="24" text-anchor="middle" font-size="16">{_escape(title)}</text>',
    ]


def _whole(svg):
    return "\n".join([*svg, "</svg>"]) + "\n"


def _levels(y, y_max, y_step):
    svg = []
    for index in range(round(y_max / y_step) + 1):
        at = y(index * y_step)
        svg += [_line((LEFT, at), (WIDTH - RIGHT, at), "#dddddd"), _text((LEFT - 6, at + 4), "end", number(index * y_step))]
    return svg


def _ticks(x, at, ticks):
    svg = []
    for tick in ticks:
        svg += [_line((x(tick), at), (x(tick), at + 5), "#333333"), _text((x(tick), at + 20), "middle", number(tick))]
    return svg


def _axes(axes):
    return [_text(((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 18), "middle", axes[0]), _text((LEFT, TOP - 10), "start", axes[1])]


def _line(start, end, colour):
    return f'<path d="M{start[0]:.1f} {start[1]:.1f} L{end[0]:.1f} {end[1]:.1f}" stroke="{colour}"/>'


def _text(at, anchor, words):
    return f'<text x="{at[0]:.1f}" y="{at[1]:.1f}" text-anchor="{anchor}">{_escape(words)}</text>'


def _escape(words):
    return escape(words, quote=False)


def number(value):
    """A figure without needless digits."""
    digits = min(max(2 - math.floor(math.log10(abs(value))), 0), 6) if value else 0
    told = f"{value:.{digits}f}"
    return told.rstrip("0").rstrip(".") if "." in told else told
