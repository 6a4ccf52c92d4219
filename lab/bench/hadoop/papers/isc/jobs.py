"""The seven jobs that the paper calls favourable (3.4), and a search."""

from functools import partial

from papers import svg
from papers.outcome import Outcome, Section

from ...near.jobs import JOBS
from ...near.pairs import HALF_BYTES, Pair
from ..published import JOB_GAIN, TASK_GAIN
from .study import elapsed_s, machine_cpu_s, map_cpu_s, medians_rows, reach_row, task_s, told_row


def outcome(study):
    """The figures of a study."""
    tasks = Section("a map task of 64 MB: stock's seconds over the node's")
    jobs = Section("the job: stock's seconds over the node's")
    processor = Section("processor of map tasks' JVMs: stock's over the node's")
    machine = Section("processor of the machine: stock's over the node's")
    seconds, bars = Section("seconds of a map task of 64 MB"), []
    for job in JOBS:
        pair = Pair(job, HALF_BYTES)
        task = study.gain(pair, task_s)
        # The paper measured word count alone and expects the same of the others.
        measured = job == "wordcount"
        reach_row(tasks, job, task, TASK_GAIN, TASK_GAIN if measured else None)
        reach_row(jobs, job, study.gain(pair, elapsed_s), JOB_GAIN, JOB_GAIN if measured else None)
        told_row(processor, job, study.gain(pair, map_cpu_s))
        told_row(machine, job, study.gain(pair, machine_cpu_s))
        medians_rows(seconds, job, study.both(pair, task_s))
        bars += [(job, task, False)] if task is not None else []
    differs = [
        *study.differs(),
        "One map task of 64,000,000 bytes per job, so the constant parts of a task and of a job weigh more than in larger jobs. The "
        "search is Hadoop's grep for a word, two jobs; the first one maps the text.",
    ]
    chart = partial(svg.bars, "Map tasks of 64 MB", "times as fast", bars)
    return Outcome([tasks, jobs, processor, machine, seconds], differs, chart, study.machine)
