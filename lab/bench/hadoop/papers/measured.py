"""When, how often, with which build and on which input the results of a file were measured, in lines for the head of a table."""

from papers.outcome import machine_told

MB = 1e6
MIB = 2**20


def _span(values, unit, several=None):
    """The least and the largest of numbers, with their unit."""
    least, most = min(values), max(values)
    told = f"{least:,.0f}" if least == most else f"{least:,.0f} to {most:,.0f}"
    return f"{told} {unit if most == 1 else several or unit}"


def _when(dates):
    known = sorted({date for date in dates if date})
    told = " to ".join(dict.fromkeys((known[0], known[-1]))) if known else "dates not recorded"
    return told + (", some dates not recorded" if known and not all(dates) else "")


def _with(builds):
    """Commits of builds: a text, or a dict of `harness.build`."""
    commits = [build.get("commit") if isinstance(build, dict) else build for build in builds]
    known = sorted({commit for commit in commits if commit})
    if not known:
        return "build not recorded"
    some = "" if all(commits) else ", some not recorded"
    return f"build {', '.join(known)}{some}" if len(known) < 4 else f"{len(known)} builds{some}"


def scenarios(found):
    """Of scenarios that run.py measured, a line for each; with the machine, if they have several."""
    machines = [machine_told(one.get("machine", {})) for one in found]
    lines = []
    for one, machine in zip(found, machines):
        points = one["points"]
        parts = [
            _when([one.get("date")]),
            _span([len(point["rounds"]) for point in points], "round", "rounds"),
            _with([one.get("build")]),
            "input of " + _span([point["settings"]["size_bytes"] / MIB for point in points], "MiB"),
        ]
        if len(set(machines)) > 1:
            parts.append(machine)
        lines.append(f"{one['scenario']}: {', '.join(parts)}")
    return lines


def cells(entries, scale):
    """Of the cells that study.py measured, in one line."""
    valid = [one for one in entries if one["valid"]]
    if not valid:
        return ["no valid cell"]
    return [
        ", ".join((
            _when([one.get("date") for one in valid]),
            _span([max(len(one.get("rounds", ())), 1) for one in valid], "round", "rounds"),
            _with([one.get("build") for one in valid]),
            f"input of {scale:.3f} of the paper's (traces: all of it)",
        ))
    ]  # fmt: skip


def pairs(found, rounds):
    """Of the pairs that isc.py measured, in one line. `rounds` has how often each was measured, by its cell without the round."""
    if not found:
        return ["no pair"]
    sizes = [one["cell"]["file_bytes"] * one["cell"]["files"] / MB for one in found]
    return [
        ", ".join((
            _when([one.get("date") for one in found]),
            _span(rounds, "round", "rounds"),
            _with([one.get("build") for one in found]),
            f"inputs of up to {max(sizes):,.0f} MB",
        ))
    ]  # fmt: skip
