"""The phases and counters of a job, from the history file that Hadoop keeps (.jhist, JSON)."""

import json
import re
from dataclasses import dataclass


class BadHistory(Exception):
    """A history file that can't be read; the text says where."""


@dataclass(frozen=True)
class Bar:
    """A phase of a task attempt; milliseconds since the job was submitted."""

    phase: str
    """map, spill (its last spill and its own merge), shuffle, sort or reduce."""
    start_ms: int
    end_ms: int


@dataclass(frozen=True)
class Attempt:
    """One successful run of a task."""

    name: str
    """As `m 3` or `r 0`."""
    bars: tuple


@dataclass(frozen=True)
class Failure:
    """A run of a task that failed or was killed."""

    name: str
    """As `m 3` or `r 0`."""
    status: str
    """FAILED or KILLED."""
    reason: str
    """The first line of its master's diagnostics."""


@dataclass(frozen=True)
class History:
    """A job's times, counters and attempts."""

    job_id: str
    name: str
    state: str
    submitted_ms: int
    """When it was submitted, in milliseconds of the system's clock."""
    elapsed_s: float
    """From submission to the end."""
    counters: dict
    """Total counters, by group and name: `FILE_BYTES_WRITTEN` under its group's class name."""
    attempts: tuple
    """In order of their start."""
    failures: tuple
    """Attempts that failed or were killed, in the order in which that was noticed."""

    def counter(self, name):
        """A counter by its name, from any group; 0 if it never counted."""
        return sum(counters.get(name, 0) for counters in self.counters.values())

    def phase_s(self, phase):
        """Seconds that all attempts together spent in a phase."""
        return sum(bar.end_ms - bar.start_ms for a in self.attempts for bar in a.bars if bar.phase == phase) / 1000


def parse(text):
    """Reads the text of a .jhist file."""
    events = []
    lines = text.splitlines()
    if not lines or lines[0] != "Avro-Json":
        raise BadHistory("not a history in JSON: its first line is not Avro-Json")
    for number, line in enumerate(lines[2:], 3):
        if not line.strip():
            continue
        try:
            event = json.loads(line)
            (body,) = event["event"].values()
            events.append((event["type"], body))
        except (ValueError, KeyError, AttributeError) as error:
            raise BadHistory(f"line {number} is no event: {error}") from error
    return _history(events)


def _history(events):
    submitted, finished = None, None
    starts, attempts, failures = {}, [], []
    for kind, body in events:
        if kind == "JOB_SUBMITTED":
            submitted = body
        elif kind in ("JOB_FINISHED", "JOB_FAILED", "JOB_KILLED", "JOB_ERROR"):
            finished = (kind, body)
        elif kind in ("MAP_ATTEMPT_STARTED", "REDUCE_ATTEMPT_STARTED"):
            starts[body["attemptId"]] = body["startTime"]
        elif kind in ("MAP_ATTEMPT_FINISHED", "REDUCE_ATTEMPT_FINISHED"):
            attempts.append((kind, body))
        elif kind.endswith(("ATTEMPT_FAILED", "ATTEMPT_KILLED")):
            failures.append(_failure(kind, body))
    if submitted is None or finished is None:
        raise BadHistory("the job's beginning or end is missing")
    begin = submitted["submitTime"]
    kind, end = finished
    rows = sorted((_attempt(k, body, starts, begin) for k, body in attempts), key=lambda a: (a.bars[0].start_ms, a.name))
    return History(
        job_id=submitted["jobid"],
        name=submitted["jobName"],
        state="SUCCEEDED" if kind == "JOB_FINISHED" else kind.removeprefix("JOB_"),
        submitted_ms=begin,
        elapsed_s=(end["finishTime"] - begin) / 1000,
        counters=_counters(end.get("totalCounters")),
        attempts=tuple(rows),
        failures=tuple(failures),
    )


def _short(attempt_id):
    """`r 0` of `attempt_1792_0003_r_000000_0`."""
    letter, number = attempt_id.split("_")[3:5]
    return f"{letter} {int(number)}"


def _failure(kind, body):
    lines = body.get("error", "").strip().splitlines()
    # NodeManagers begin with the time, `[2026-11-22 12:27:08.600]`.
    reason = re.sub(r"^\[[-:. \d]+\]", "", lines[0]) if lines else ""
    return Failure(_short(body["attemptId"]), kind.rpartition("_")[2], reason)


def _attempt(kind, body, starts, begin):
    name = body["attemptId"]
    at = [starts[name] - begin]
    if kind == "MAP_ATTEMPT_FINISHED":
        phases = ("map", "spill")
        at += [body["mapFinishTime"] - begin, body["finishTime"] - begin]
    else:
        phases = ("shuffle", "sort", "reduce")
        at += [body["shuffleFinishTime"] - begin, body["sortFinishTime"] - begin, body["finishTime"] - begin]
    # Hadoop's clocks of task and master may differ by some milliseconds.
    for index in range(1, len(at)):
        at[index] = max(at[index], at[index - 1])
    return Attempt(_short(name), tuple(Bar(p, a, b) for p, a, b in zip(phases, at, at[1:])))


def _counters(total):
    if not total:
        return {}
    groups = total["groups"] or []
    return {group["name"]: {one["name"]: one["value"] for one in group["counts"]} for group in groups}
