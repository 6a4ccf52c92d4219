"""What belongs to the process: Ctrl-C, threads, the interpreter's lock, forks, progress, the end."""

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute
import pytest

import merganser as mg

# Long enough to be interrupted: batches that never end.
ENDLESS = """
    import pyarrow as pa
    def batches():
        while True:
            yield pa.record_batch({"n": pa.array(range(20_000))})
    def endless():
        return pa.RecordBatchReader.from_batches(pa.schema([("n", pa.int64())]), batches())
"""


@pytest.fixture
def python():
    """A function that starts another Python with some code. Its processes are ended with the test."""
    started = []

    def start(code):
        words = [sys.executable, "-c", textwrap.dedent(ENDLESS) + textwrap.dedent(code)]
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True, start_new_session=True))
        return started[-1]

    yield start
    for process in started:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.communicate()


@pytest.mark.parametrize("kind", ["stream", "lines"])
def test_ctrl_c_ends_a_sort_at_once(python, kind):
    if kind == "lines":
        with open("lines.txt", "w") as file:
            for number in range(3_000_000):
                file.write(f"{number * 7919 % 3_000_017:08} some more text for this line\n")
    call = {
        "stream": "mg.sort(endless(), 'out.parquet', by='n', memory='40MB', progress=begun)",
        "lines": "mg.sort('lines.txt', 'out.txt', memory='20MB', threads=1, progress=begun)",
    }[kind]
    code = f"""
        import merganser as mg, time
        begun = lambda phase, done, total: print("begun", flush=True)
        try:
            {call}
        except KeyboardInterrupt:
            print(time.monotonic(), flush=True)
    """
    process = python(code)
    assert process.stdout.readline() == "begun\n"
    sent = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0 and out, err
    waited = float(out.split()[-1]) - sent
    print(f"{kind}: {waited:.3f} s after SIGINT")
    # A job is left after 0.15 s; the rest is what a busy machine needs to wake the process.
    assert waited < 2
    left = {path.name for path in Path().iterdir()} - {"lines.txt"}
    assert left == {"big.txt", "in"}, left


def test_a_stopped_view_can_be_made_again_at_once():
    """The thread of the stopped job may still be in a sort of its memory: the next job waits for it."""
    table = pa.table({"text": pa.array([f"{n * 7919 % 1_000_003:09}" for n in range(1_000_000)])})
    asked = iter([False, True])
    with pytest.raises(mg.Cancelled):
        mg.sort_view(table, "v.view", by="text", cancel=lambda: next(asked, True))
    assert len(mg.sort_view(table, "v.view", by="text")) == 1_000_000


def test_cancel_is_asked_and_errors_of_progress_come_out():
    namespace = {}
    exec(textwrap.dedent(ENDLESS), namespace)
    begun = time.monotonic()
    with pytest.raises(mg.Cancelled, match="cancelled"):
        mg.sort(namespace["endless"](), "out.parquet", by="n", cancel=lambda: time.monotonic() - begun > 0.2)
    assert time.monotonic() - begun < 5

    def refuse(phase, done, total):
        raise RuntimeError(f"enough of {phase}")

    with pytest.raises(RuntimeError, match="enough of reading"):
        mg.sort(namespace["endless"](), "out.parquet", by="n", progress=refuse)
    assert not Path("out.parquet").exists()


def test_progress_is_told():
    told = []
    mg.sort("in/*.parquet", "out.parquet", by="name", progress=lambda *what: told.append(what))
    assert told and told[-1][0] == "writing" and told[-1][1] > 0
    mg.sort("in/*.parquet", "out.parquet", by="name", progress=True)


def test_the_interpreters_lock_is_free_meanwhile():
    """A thread counts while another sorts: most of the time, not only where the sort looks for signals."""
    table = pa.table({"n": pa.array(range(2_000_000)), "text": pa.array([f"{n:09}" for n in range(2_000_000)])})
    counts, ended = [0], threading.Event()

    def count():
        while not ended.is_set():
            counts[0] += 1

    thread = threading.Thread(target=count)
    begun = time.monotonic()
    thread.start()
    time.sleep(0.2)
    alone = counts[0] / (time.monotonic() - begun)
    before, begun = counts[0], time.monotonic()
    mg.sort(table, "out.arrow", by="text desc", threads=1)
    seconds = time.monotonic() - begun
    ended.set()
    thread.join()
    share = (counts[0] - before) / seconds / alone
    print(f"the other thread had {share:.0%} of its speed during {seconds:.2f} s")
    assert share > 0.2


def test_sorts_in_several_threads():
    failed = []

    def sort(number):
        try:
            assert mg.sort("in/*.parquet", f"{number}.parquet", by="name").rows == 6
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=sort, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_a_fork_after_use_is_refused(python):
    """A fork in a Python of its own, because this one has threads of other libraries."""
    code = """
        import os, merganser as mg
        before = os.fork()
        if before == 0:
            # Not used yet: a child may use it.
            mg.sort("in/*.parquet", "child.parquet", by="name")
            os._exit(0)
        assert os.waitpid(before, 0)[1] == 0
        view = mg.sort_view("in/*.parquet", "v.view", by="name")
        stream = pa.RecordBatchReader.from_stream(view)
        child = os.fork()
        if child == 0:
            calls = [lambda: mg.sort("in/*.parquet", "no.parquet", by="name"), lambda: view.columns, lambda: view[0],
                     lambda: mg.open_view("v.view"), lambda: pa.RecordBatchReader.from_stream(view),
                     stream.read_next_batch]
            for call in calls:
                try:
                    call()
                except (mg.Error, pa.ArrowException, OSError) as error:
                    print(error, flush=True)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        print(pa.table(view).num_rows)
    """
    process = python(code)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    *refusals, last = out.splitlines()
    assert last == "6" and len(refusals) == 6, out
    for refusal in refusals:
        assert "was used before this process was forked" in refusal and "forkserver" in refusal
    assert Path("child.parquet").exists() and not Path("no.parquet").exists()


def sum_of(part):
    return pa.compute.sum(pa.table(part)["qty"]).as_py()


def test_other_processes_read_parts():
    view = mg.sort_view("in/*.parquet", "v.view", by="qty nulls last").select(["qty"])
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.map(sum_of, [view[:2], view[2:]]) == [3, 20]


def test_nothing_is_said_and_nothing_is_held_at_the_end(python):
    code = """
        import merganser as mg, threading
        view = mg.sort_view("in/*.parquet", "v.view", by="name")
        reader = pa.RecordBatchReader.from_stream(view)
        reader.read_next_batch()
        rows = iter(view)
        next(rows)
    """
    process = python(code)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "", "")
