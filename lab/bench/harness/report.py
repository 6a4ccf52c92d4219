"""Results: one JSON file per scenario with all measurements, and a page of tables.

    results/<date>-<machine>/machine.json   the machine and its disk
    results/<date>-<machine>/<scenario>.json
    results/<date>-<machine>/README.md      made from the files above, so it covers earlier runs too
"""

import json
import re
import statistics
from dataclasses import asdict
from pathlib import Path

from .scenarios import SCENARIOS

_COLUMNS = (
    # title, field of a cost, divisor, digits
    ("wall s", "wall_s", 1, 2),
    ("settle s", "settle_s", 1, 2),
    ("CPU s", "cpu_s", 1, 1),
    ("peak RSS MiB", "rss_peak_bytes", 2**20, 0),
    ("read GB", "device_read_bytes", 1e9, 2),
    ("written GB", "device_written_bytes", 1e9, 2),
    ("peak disk GB", "disk_peak_bytes", 1e9, 2),
)


def median(values):
    """The median, or None if there are no figures or a figure is missing."""
    values = list(values)
    return statistics.median(values) if values and None not in values else None


def judge(claim, rounds):
    """A claim's figures, one per round, with their median and whether it reaches the target."""
    figures = []
    for one in rounds:
        try:
            figures.append(claim.figure(one))
        except (KeyError, TypeError, ZeroDivisionError):
            pass  # a peer that is not installed, or bytes that could not be counted
    middle = median(figures)
    return {
        "what": claim.what,
        "reach": claim.reach(),
        "unit": claim.unit,
        "figures": figures,
        "median": middle,
        "met": None if middle is None else claim.met(middle),
    }


def result(name, scenario, plan, rounds, errors, settings):
    """All measurements of a scenario, ready for JSON."""
    return {
        "scenario": name,
        "title": scenario.title,
        "input_bytes": plan.input_bytes,
        "memory_bytes": plan.memory_bytes,
        "notes": list(plan.notes),
        **settings,
        "errors": errors,
        "rounds": [
            {who: {step: asdict(cost) for step, cost in outcome.costs.items()} for who, outcome in one.items()}
            for one in rounds
        ],
        "claims": [judge(claim, rounds) for claim in plan.claims],
    }


def write(folder, result_of_scenario, machine):
    """Writes one scenario's result and makes the page of tables again."""
    folder.mkdir(parents=True, exist_ok=True)
    _write_json(folder / "machine.json", machine)
    _write_json(folder / f"{result_of_scenario['scenario']}.json", result_of_scenario)
    kept = [folder / f"{name}.json" for name in SCENARIOS]
    results = [json.loads(path.read_text()) for path in kept if path.exists()]
    (folder / "README.md").write_text(page(machine, results))


def _write_json(path: Path, value):
    path.write_text(json.dumps(value, indent=1) + "\n")


def _number(value, digits):
    return "-" if value is None else f"{value:.{digits}f}"


def _table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def claims_table(claims):
    """One row per claim: figure, target, median and spread, met or not."""
    rows = []
    for claim in claims:
        figures, unit = claim["figures"], claim["unit"]
        if claim["median"] is None:
            rows.append((claim["what"], claim["reach"], "not measured", ""))
            continue
        spread = f" ({min(figures):.2f} to {max(figures):.2f})" if len(figures) > 1 else ""
        rows.append((claim["what"], claim["reach"], f"{claim['median']:.2f}{unit}{spread}", "yes" if claim["met"] else "no"))
    return _table(("figure", "reach", "median of rounds (spread)", "met"), rows)


def summary_table(results):
    """One row per claim of all scenarios, as docs/benchmarks.md shows them."""
    rows = []
    for one in results:
        for claim in one["claims"]:
            measured = "not measured" if claim["median"] is None else f"{claim['median']:.2f}{claim['unit']}"
            met = {None: "", True: "yes", False: "no"}[claim["met"]]
            rows.append((f"`{one['scenario']}`", claim["what"], claim["reach"], measured, met))
    return _table(("scenario", "figure", "reach", "median", "met"), rows)


def costs_table(rounds):
    """One row per contender and step: the median of each cost."""
    seen = {}
    for one in rounds:
        for who, steps in one.items():
            for step, cost in steps.items():
                seen.setdefault((who, step), []).append(cost)
    rows = []
    for (who, step), costs in seen.items():
        cells = [_number(_scaled(median(cost[key] for cost in costs), by), digits) for _, key, by, digits in _COLUMNS]
        rows.append((f"{who}, {step}", *cells))
    return _table(("medians", *(title for title, *_ in _COLUMNS)), rows)


def _scaled(value, by):
    return None if value is None else value / by


def gist(error):
    """The most informative line of a program's error output."""
    lines = error.splitlines()
    telling = [line for line in lines if re.search(r"error|exception|insufficient", line, re.IGNORECASE)]
    return (telling or lines)[-1].strip()


def page(machine, results):
    """The page of tables over all results of a machine and day."""
    parts = [
        "# Results",
        "Made by `lab/bench/run.py` from the JSON files next to it, which hold every round and every command line.",
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_bytes'] / 2**30:.0f} GiB of memory; "
        f"{machine['system']}, kernel {machine['kernel']}; disk {machine['disk']}, {machine['file_system']}.",
    ]
    parts.append(summary_table(results))
    for one in results:
        parts.append(f"## {one['scenario']}: {one['title']}")
        if one["scale"] != 1:
            parts.append(f"**At scale {one['scale']:g}: these figures say nothing about the full size.**")
        parts += one["notes"]
        limit = one["memory_limit_bytes"]
        parts.append(
            f"{len(one['rounds'])} rounds on {one['date']}; input {one['input_bytes'] / 1e9:.2f} GB, "
            f"memory {one['memory_bytes'] / 2**20:.0f} MiB, "
            + (f"each job held to {limit / 2**20:.0f} MiB with its page cache" if limit else "no memory limit could be set")
            + ("" if one["caches_dropped"] else ", page cache not dropped before each")
            + "."
        )
        versions = one.get("versions", {})  # earlier results have none
        if versions:
            parts.append("Versions: " + ", ".join(f"{who} {what or 'unknown'}" for who, what in versions.items()) + ".")
        parts.append(claims_table(one["claims"]))
        parts.append(costs_table(one["rounds"]))
        for who, error in one["errors"].items():
            parts.append(f"Left out, {who}: `{gist(error)}`")
    return "\n\n".join(parts) + "\n"
