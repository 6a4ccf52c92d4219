"""Results: one JSON file per scenario and device, a page of tables made from them, and execution charts.

    results/<date>-<machine>-hadoop/<scenario>-<device>.json
    results/<date>-<machine>-hadoop/<scenario>-<device>.html     the chart; one per point
    results/<date>-<machine>-hadoop/README.md                    made from the JSON files, so it covers earlier runs too
"""

import json
from collections import Counter

from harness.report import claims_table, median

from .scenarios import SCENARIOS

_COLUMNS = (
    # title, how it is read from a run, digits
    ("elapsed s", lambda run: run["elapsed_s"], 1),
    ("settle s", lambda run: run["settle_s"], 1),
    ("written MiB", lambda run: run["device_written_bytes"] / 2**20, 0),
    ("read MiB", lambda run: run["device_read_bytes"] / 2**20, 0),
    ("map s", lambda run: run["phase_s"]["map"], 1),
    ("last spill, merge s", lambda run: run["phase_s"]["spill"], 1),
    ("shuffle s", lambda run: run["phase_s"]["shuffle"], 1),
    ("sort s", lambda run: run["phase_s"]["sort"], 1),
    ("reduce s", lambda run: run["phase_s"]["reduce"], 1),
    ("task CPU s", lambda run: run["counters"].get("CPU_MILLISECONDS", 0) / 1000, 1),
    ("NodeManager CPU s", lambda run: run["node_manager_cpu_s"], 1),
    ("merge process CPU s", lambda run: run["merge_cpu_s"], 1),
    ("NodeManager MiB", lambda run: run["node_manager_rss_bytes"] / 2**20, 0),
    ("merge process MiB", lambda run: run["merge_rss_bytes"] / 2**20, 0),
)


def without_paths(words):
    """A command line without the options that only name paths of this machine."""
    kept, skip = [], False
    for word in words:
        name, equals, _ = word.partition("=")
        if skip:
            skip = False
        elif name in ("--dir", "--results", "--json", "--jars", "--plugin", "--workloads", "--merganser"):
            skip = not equals
        else:
            kept.append(word)
    return kept


def write_json(path, value):
    """Writes `value` so that people can read it too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1) + "\n")


def write_rows(path, value):
    """Writes an object of large lists: a line for each of their entries, so that it stays short and shows what changed."""
    def told(entry):
        if not isinstance(entry, list):
            return json.dumps(entry)
        return "[\n" + ",\n".join(map(json.dumps, entry)) + "\n]"

    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{" + ",\n".join(f"{json.dumps(name)}: {told(entry)}" for name, entry in value.items()) + "}\n")


def write(folder, result, charts):
    """Writes a scenario's result and charts, and makes the page of tables again."""
    write_json(folder / f"{result['scenario']}-{result['device']}.json", result)
    for name, chart in charts.items():
        (folder / f"{name}-{result['device']}.html").write_text(chart)
    kept = [folder / f"{name}-{device}.json" for name in SCENARIOS for device in ("throttled", "plain")]
    results = [json.loads(path.read_text()) for path in kept if path.exists()]
    (folder / "README.md").write_text(page(results))


def _table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def costs_table(point):
    """One row per contender: the median of each cost."""
    rows = []
    for who in point["rounds"][0]:
        runs = [one[who] for one in point["rounds"]]
        rows.append((who, *(f"{median(of(run) for run in runs):.{digits}f}" for _, of, digits in _COLUMNS)))
    return _table(("medians", *(title for title, *_ in _COLUMNS)), rows)


def failures_list(point):
    """Failed and killed attempts of tasks: one line per contender and reason."""
    told = Counter(
        (who, failure["status"], failure["reason"])
        for one in point["rounds"]
        for who, run in one.items()
        for failure in run.get("failures", ())
    )
    return "\n".join(f"- {who}, attempts {status.lower()}: {count}, {reason}" for (who, status, reason), count in told.items())


def summary_table(results):
    """One row per claim, as docs/benchmarks.md shows them."""
    rows = []
    for one in results:
        for point in one["points"]:
            for claim in point["claims"]:
                name = f"`{one['scenario']}`{', ' * bool(point['name'])}{point['name']}"
                measured = "not measured" if claim["median"] is None else f"{claim['median']:.1f}{claim['unit']}"
                met = {None: "", True: "yes", False: "no"}[claim["met"]]
                rows.append((name, one["device"], claim["what"], claim["reach"], measured, met))
    return _table(("scenario", "disk", "figure", "reach", "median", "met"), rows)


def page_of(result):
    """One scenario's part of the page."""
    parts = [f"## {result['scenario']}, {result['device']} disk: {result['title']}"]
    if result["scale"] != 1:
        parts.append(f"**At scale {result['scale']:g}: these figures say nothing about the full size.**")
    for point in result["points"]:
        told = point["settings"]
        if point["name"]:
            parts.append(f"### {point['name']}")
        parts.append(
            f"{len(point['rounds'])} rounds on {result['date']}; input {told['size_bytes'] / 2**20:.0f} MiB, {told['maps']} maps "
            f"of {told['spills']} spills, {told['reduces']} reducers with {told['reduce_heap_mb']} MB of heap, "
            f"{told['nodes']} nodes; all held to {told['memory_limit_bytes'] / 2**20:.0f} MiB with their page cache."
        )
        parts.append(claims_table(point["claims"]))
        parts.append(costs_table(point))
        if failures := failures_list(point):
            parts.append(failures)
    return "\n\n".join(parts)


def page(results):
    """The page of tables over all results of a machine and day."""
    described = results[0]["machine"]
    parts = [
        "# Results on Hadoop",
        "Made by `lab/bench/hadoop/run.py` from the JSON files next to it, which hold every round and the command line. "
        "The HTML files are execution charts.",
        f"{described['cpu']}, {described['cores']} cores, {described['memory_bytes'] / 2**30:.0f} GiB of memory; "
        f"{described['system']}, kernel {described['kernel']}; disk {described['disk']}, {described['file_system']}.",
        summary_table(results),
        *map(page_of, results),
    ]
    return "\n\n".join(parts) + "\n"
