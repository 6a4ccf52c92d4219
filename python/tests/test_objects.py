"""Tables in object stores: read and written through a store that misbehaves, and through moto, whose S3 is that of others."""

import contextlib
import io
import os
import pathlib
import random
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from node import ROOT, command, leave_out
from object_server import AnswerLost, Cut, Lie, ObjectServer, Status, Whole, slow

try:
    import pyarrow
    import pyarrow.ipc
    import pyarrow.parquet
except ImportError as missing:
    leave_out(f"{missing}; .ci/setup flight installs the clients")

try:
    import boto3
    import moto
except ImportError:
    moto = None

MIB = 1 << 20
# What the docs allow in addition to --memory.
OVERHEAD = 64 * MIB
SECRETS = ("a-secret-of-the-test", "a-token-of-the-test", "Signature=")
CSV = ("--output-format", "csv")


def table(rows, seed=1, wide=0):
    drawn = random.Random(seed)
    columns = {
        "name": [f"name {drawn.randrange(rows // 3 + 1):06}" for _ in range(rows)],
        "at": list(range(rows)),
    }
    if wide:
        columns["text"] = [drawn.randbytes(wide // 2).hex() for _ in range(rows)]
    return pyarrow.table(columns) if rows else pyarrow.table(columns, schema=table(1).schema)


def parquet(rows, seed=1, wide=0, **options):
    out = io.BytesIO()
    pyarrow.parquet.write_table(table(rows, seed, wide), out, **options)
    return out.getvalue()


def arrow(rows, stream=False):
    out = io.BytesIO()
    make = pyarrow.ipc.new_stream if stream else pyarrow.ipc.new_file
    with make(out, table(rows).schema) as writer:
        writer.write_table(table(rows), max_chunksize=2000)
    return out.getvalue()


def in_order(read):
    names = read.column("name").to_pylist()
    return names == sorted(names)


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.store = self.enterContext(ObjectServer())

    def start(self, *words, environment=None):
        all_of_them = {**os.environ, **self.store.environment(), "TMPDIR": str(self.folder), **(environment or {})}
        if "AWS_PROFILE" not in (environment or {}):
            all_of_them.pop("AWS_PROFILE", None)
        pipe = subprocess.PIPE
        return subprocess.Popen([command(), *map(str, words)], cwd=self.folder, stdout=pipe, stderr=pipe, env=all_of_them)

    def run_to(self, status, *words, environment=None):
        """What a command prints, or its sentence. No output has a secret."""
        with self.start(*words, environment=environment) as process:
            printed, told = (text.decode() for text in process.communicate(timeout=120))
        self.assertEqual(process.returncode, status, f"{words}: {told}")
        for secret in SECRETS:
            self.assertNotIn(secret, printed + told)
        return printed if status == 0 else told

    def sort(self, *words, **how):
        return self.run_to(0, "sort", *words, "--key", "name", **how)

    def refused(self, *words, **how):
        """The one sentence with which a sort is refused; nothing is left of a result."""
        before = dict(self.store.objects)
        told = self.run_to(2, "sort", *words, "--key", "name", "-o", "s3://bucket/out.parquet", **how)
        self.assertEqual(told.count("\n"), 1, told)
        self.assertTrue(told.startswith("merganser: "), told)
        self.assertEqual(self.store.objects.keys(), before.keys())
        self.assertEqual(self.store.uploads, {})
        self.assertEqual(self.notes(), [])
        return told

    def notes(self):
        return [path for path in self.folder.iterdir() if path.name.endswith(".merganser-upload")]

    def read(self, key):
        return pyarrow.parquet.read_table(io.BytesIO(self.store.objects[key]))


class Reading(Case):
    def test_objects_are_read_as_files_are(self):
        """Every kind of file, in folders that name a column, as one folder, a pattern and names; the result is that of files."""
        files = {
            "in/country=DE/a b.parquet": parquet(9000, 1, row_group_size=1000),
            "in/country=DE/b.arrow": arrow(7000),
            "in/country=FR/%20.arrows": arrow(3000, stream=True),
            "in/country=FR/empty.parquet": parquet(0),
            "in/country=FR/_hidden/c.parquet": parquet(5),
            "in/country=FR/.d.parquet": parquet(5),
            "in/readme.txt": b"no table",
        }
        for key, body in files.items():
            self.store.put(key, body)
            path = self.folder / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(body)
        expected = self.sort("in", *CSV)
        self.assertEqual(expected.count("\n"), 19001)
        for words in (["s3://bucket/in/"], ["s3://bucket/in"], ["s3://bucket/in/country=*"], ["s3://bucket/in/*/[!.]*.[ap]*"]):
            self.assertEqual(self.sort(*words, *CSV), expected, words)
        for order in (["--distinct"], ["--top", "7"], ["--count"]):
            self.assertEqual(self.sort("s3://bucket/in", *CSV, *order), self.sort("in", *CSV, *order))
        one = "in/country=DE/a b.parquet"
        self.assertEqual(self.sort(f"s3://bucket/{one}", *CSV), self.sort(one, *CSV))
        web = f"{self.store.url}/bucket/in/country=DE/a%20b.parquet?X-Amz-Signature=abc"
        self.assertEqual(self.sort(web, *CSV).count("\n"), 9001)
        # Files and objects together.
        both = self.sort(one, "s3://bucket/in/country=DE/b.arrow", *CSV)
        self.assertEqual(both, self.sort(one, "in/country=DE/b.arrow", *CSV))
        for task in ("verify", "info"):
            self.assertEqual(self.run_to(0, task, "s3://bucket/in"), self.run_to(0, task, "in"))

    def test_the_page_has_commands_that_work(self):
        for country in ("DE", "FR"):
            self.store.put(f"in/country={country}/a.parquet", parquet(100))
            self.store.put(f"in/{country}.parquet", parquet(100))
        page = (ROOT / "docs/tables/tables.md").read_text().split("## Object stores")[1]
        lines = page.split("```")[1].strip().splitlines()
        self.assertEqual(len(lines), 3)
        for line in lines[:2]:
            self.run_to(0, *shlex.split(line)[1:])
        for country in ("DE", "FR"):
            del self.store.objects[f"in/{country}.parquet"]
        self.run_to(0, *shlex.split(lines[2])[1:])
        self.assertEqual([key for key in sorted(self.store.objects) if key.startswith("by-")], [f"by-country/country={name}/part-00000.parquet" for name in ("DE", "FR")])

    def test_sorted_objects_are_merged(self):
        for number in range(5):
            self.store.put(f"m/{number}.parquet", parquet(2000, number))
            self.sort(f"s3://bucket/m/{number}.parquet", "-o", f"s3://bucket/s/{number}.parquet")
        merged = self.sort("-m", "s3://bucket/s/*", *CSV)
        self.assertEqual(merged, self.sort("s3://bucket/s", *CSV))
        told = self.run_to(2, "sort", "-m", "s3://bucket/m/", "--key", "name")
        self.assertRegex(told, r"s3://bucket/m/0.parquet: row \d+ is out of order")

    def test_a_store_that_is_busy_cut_and_slow_is_asked_again(self):
        body = parquet(60_000, wide=100, row_group_size=9000)
        self.store.put("a.parquet", body)
        (self.folder / "a.parquet").write_bytes(body)
        expected = self.sort("a.parquet", *CSV)
        left = {"busy": 3, "cut": 3, "slow": 3, "short": 2}

        def fault(request):
            if request.method != "GET" or not request.range or request.range[1] - request.range[0] < 1000:
                return None
            kind = random.choice([kind for kind in left if left[kind]] or [None])
            if kind:
                left[kind] -= 1
            faults = {"busy": Status(503), "cut": Cut(777), "slow": slow, "short": Lie(shorter=10), None: None}
            return slow(0.3) if faults[kind] is slow else faults[kind]

        self.store.on_request = fault
        self.assertEqual(self.sort("s3://bucket/a.parquet", *CSV, "--memory", "64M", environment={"MERGANSER_RETRY_SECONDS": "20"}), expected)
        self.assertEqual(sum(left.values()), 0)

    def test_a_fault_that_stays_is_one_sentence(self):
        self.store.put("a.parquet", parquet(60_000, wide=100))

        def always(fault):
            return lambda request: fault if request.range and request.range[0] < 1_000_000 < request.range[1] else None

        name = "s3://bucket/a.parquet: at offset "
        for fault, why in [
            (Status(503), "the store answers 503 Service Unavailable (SlowDown: Please reduce your request rate); it may be busy"),
            (Status(403, b"<Error><Code>AccessDenied</Code><Signature>secret</Signature></Error>"), "the store refuses it (AccessDenied)"),
            (Cut(100), "the answer ended after "),
            (Whole(), "the server does not send parts of a file, which are read here; copy the file"),
            (Lie(shorter=5), "the answer ended after "),
            (Lie({"Content-Length": "99000000"}), "the answer ended after "),
            (Lie({"Content-Range": "bytes 0-9/20"}), "the server sends another part of the file"),
            (Lie({"Content-Range": "bytes 4-99/x"}), "the server sends another part of the file"),
            (Lie({"ETag": '"other"'}), "was changed while it was read; repeat the command"),
            (Status(404), "was removed while it was read"),
            (Status(412), "was changed while it was read; repeat the command"),
        ]:
            with self.subTest(fault=fault):
                self.store.on_request = always(fault)
                told = self.refused("s3://bucket/a.parquet", environment={"MERGANSER_RETRY_SECONDS": "1"})
                self.assertIn(name, told)
                self.assertIn(why, told)
                self.assertNotIn("<Signature>", told)

    def test_an_object_that_changes_is_noticed(self):
        """Between the look at its end and any later read; whether the store knows If-Match, or not."""
        for self.store.knows_conditions in (True, False):
            for number in range(3, 6):
                with self.subTest(request=number, conditions=self.store.knows_conditions):
                    self.store.put("a.parquet", parquet(60_000, 1, 100))
                    seen = []

                    def change(request):
                        seen.append(request)
                        if len([one for one in seen if one.key == "a.parquet"]) == number:
                            self.store.put("a.parquet", parquet(60_000, 2, 100))

                    self.store.on_request = change
                    told = self.refused("s3://bucket/a.parquet")
                    self.assertIn("s3://bucket/a.parquet: at offset ", told)
                    self.assertIn("was changed while it was read", told)

    def test_an_input_that_is_the_result_stays_until_that_is_whole(self):
        body = parquet(60_000, wide=100, row_group_size=9000)
        self.store.put("a.parquet", body)
        self.store.on_request = lambda request: Status(503) if request.range and request.range[0] > 2_000_000 else None
        self.run_to(2, "sort", "s3://bucket/a.parquet", "-o", "s3://bucket/a.parquet", "--key", "name", environment={"MERGANSER_RETRY_SECONDS": "1"})
        self.assertEqual(self.store.objects, {"a.parquet": body})
        self.store.on_request = lambda request: None
        self.sort("s3://bucket/a.parquet", "-o", "s3://bucket/a.parquet", "--memory", "64M")
        self.assertTrue(in_order(self.read("a.parquet")))
        self.assertEqual(self.read("a.parquet").num_rows, 60_000)

    def test_memory_stays_within_the_limit(self):
        """Long columns and many; the most that a process holds is its limit and what the docs allow."""
        self.store.put("a.parquet", parquet(120_000, wide=1000, row_group_size=40_000, compression="none"))
        for words in (["--top", "3"], ["-o", "s3://bucket/out.parquet"]):
            # Of one command: the children of a process that runs nothing else.
            script = "import resource, subprocess, sys; code = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL); print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
            words = [command(), "sort", "s3://bucket/a.parquet", "--key", "name", "--memory", "96M", *words]
            environment = {**os.environ, **self.store.environment(), "TMPDIR": str(self.folder)}
            said = subprocess.run([sys.executable, "-c", script, *words], cwd=self.folder, env=environment, capture_output=True, timeout=120)
            code, kilobytes = map(int, said.stdout.split())
            self.assertEqual(code, 0, said.stderr)
            self.assertLessEqual(kilobytes * 1024, 96 * MIB + OVERHEAD, words)

    def test_eight_requests_are_on_their_way(self):
        body = parquet(120_000, wide=1000, row_group_size=20_000, compression="none")
        self.store.put("a.parquet", body)
        now, most = [0], [0]

        def late(request):
            if request.range and request.range[1] - request.range[0] > 1000:
                now[0] += 1
                most[0] = max(most[0], now[0])
                slow(0.05)
                now[0] -= 1

        self.store.on_request = late
        self.sort("s3://bucket/a.parquet", *CSV, "--memory", "512M", "--threads", "1")
        self.assertGreater(most[0], 2)
        self.assertLessEqual(most[0], 8)
        # Nothing is read twice, but the end of the file.
        read = sum(request.range[1] - request.range[0] for request in self.store.requests if request.range)
        self.assertLess(read, len(body) + (1 << 20))

    def test_what_is_not_there_is_one_sentence(self):
        self.store.put("in/x.txt", b"a line of text")
        for typed, why in [
            ("s3://bucket/none.parquet", "s3://bucket/none.parquet: has no objects of tables"),
            ("s3://bucket/in/", "s3://bucket/in/: has no objects of tables"),
            ("s3://bucket/in/*.parquet", "s3://bucket/in/*.parquet: has no objects of tables"),
            ("s3://bucket/in/x.txt", "s3://bucket/in/x.txt: is neither Parquet nor Arrow"),
            (f"{self.store.url}/bucket/none?X-Amz-Signature=a", f"{self.store.url}/bucket/none: is not there (NoSuchKey)"),
            (f"{self.store.url}/bucket/in/", "is a folder of a server, whose files can't be listed"),
            ("http://name:a-secret-of-the-test@127.0.0.1/x", "an address of an object: has a name and a password"),
            ("s3://bucket/a//b", "has an empty name"),
            ("s3://", "names no bucket"),
        ]:
            self.assertIn(why, self.refused(typed))
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            nobody = f"http://127.0.0.1:{closed.getsockname()[1]}"
        told = self.run_to(2, "sort", f"{nobody}/x.parquet", "--key", "name", environment={"MERGANSER_RETRY_SECONDS": "1"})
        self.assertIn(f"{nobody}/x.parquet: can't be reached: Connection refused; look at the network", told)

    def test_credentials_are_those_of_aws_tools(self):
        self.store.put("a.parquet", parquet(10))
        keys = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_SESSION_TOKEN": "", "AWS_EC2_METADATA_DISABLED": "true"}
        told = self.run_to(2, "info", "s3://bucket/a.parquet", environment=keys)
        self.assertIn("s3://bucket/a.parquet: there are no credentials; set AWS_ACCESS_KEY_ID", told)
        files = {"AWS_SHARED_CREDENTIALS_FILE": str(self.folder / "credentials"), "AWS_CONFIG_FILE": str(self.folder / "config")}
        (self.folder / "credentials").write_text("[work]\naws_access_key_id = A\naws_secret_access_key = a-secret-of-the-test\n")
        (self.folder / "config").write_text(f"[profile work]\nendpoint_url = {self.store.url}\n[profile role]\nrole_arn = x\n")
        work = {**keys, **files, "AWS_PROFILE": "work", "AWS_ENDPOINT_URL": ""}
        self.assertIn("rows     10", self.run_to(0, "info", "s3://bucket/a.parquet", environment=work))
        told = self.run_to(2, "info", "s3://bucket/a.parquet", environment={**work, "AWS_PROFILE": "role"})
        self.assertIn("the profile role takes its credentials from its role_arn, which is not read here", told)
        self.assertIn("rows", self.run_to(0, "info", "s3://bucket/a.parquet", environment={**keys, "AWS_SKIP_SIGNATURE": "true"}))

    def test_views_and_temporary_files_stay_here(self):
        self.store.put("a.parquet", parquet(10))
        for words, why in [
            (["--view", "s3://bucket/v"], "--view: a view is on a disk of this machine"),
            (["-T", "s3://bucket/t"], "--temp-dir: temporary files are on a disk of this machine"),
            (["--report", "s3://bucket/r.json"], "--report: a report is on a disk of this machine"),
            (["-o", f"{self.store.url}/bucket/x.parquet"], "is read only; write to a file or to a bucket"),
            (["-o", "s3://bucket/in/"], "is a folder; name an object in it"),
        ]:
            self.assertIn(why, self.run_to(2, "sort", "s3://bucket/a.parquet", "--key", "name", *words))
        (self.folder / "lines").write_text("b\na\n")
        self.assertIn("only tables are written to object stores", self.run_to(2, "sort", "lines", "-o", "s3://bucket/lines"))
        self.sort("s3://bucket/a.parquet", "--view", "a.view")
        self.run_to(0, "cat", "a.view", "-o", "s3://bucket/b.parquet")
        self.assertTrue(in_order(self.read("b.parquet")))


class Writing(Case):
    def setUp(self):
        super().setUp()
        (self.folder / "in.parquet").write_bytes(parquet(30_000, wide=1000))

    def test_a_result_is_there_when_it_is_whole(self):
        seen = []
        self.store.on_request = lambda request: seen.append("out.parquet" in self.store.objects)
        self.sort("in.parquet", "-o", "s3://bucket/out.parquet", "--memory", "64M", "--compression", "none")
        read = self.read("out.parquet")
        self.assertTrue(in_order(read) and read.num_rows == 30_000)
        self.assertFalse(any(seen))
        self.assertGreater(sum(request.method == "PUT" for request in self.store.requests), 3)
        self.assertEqual((self.store.uploads, self.notes()), ({}, []))
        for end in ("arrow", "csv", "jsonl"):
            self.sort("in.parquet", "--top", "3", "-o", f"s3://bucket/out.{end}")
        self.assertEqual(self.store.objects["out.csv"].count(b"\n"), 4)

    def test_a_store_that_refuses_leaves_nothing(self):
        for name, is_it in {
            "parts": lambda request: "partNumber" in request.query,
            "the third part": lambda request: request.query.get("partNumber") == "3",
            "the completion": lambda request: request.method == "POST" and "uploadId" in request.query,
            "the beginning": lambda request: "uploads" in request.query,
        }.items():
            for code in (503, 403):
                with self.subTest(refused=name, code=code):
                    self.store.on_request = lambda request: Status(code) if is_it(request) else None
                    told = self.refused("in.parquet", environment={"MERGANSER_RETRY_SECONDS": "1"})
                    self.assertIn("s3://bucket/out.parquet: the store ", told)

    def test_a_store_that_is_busy_is_asked_again(self):
        left = {"503": 2, "lost": 2}

        def fault(request):
            if "partNumber" not in request.query or not any(left.values()):
                return None
            kind = "503" if left["503"] else "lost"
            left[kind] -= 1
            return Status(503) if kind == "503" else AnswerLost()

        self.store.on_request = fault
        self.sort("in.parquet", "-o", "s3://bucket/out.parquet", environment={"MERGANSER_RETRY_SECONDS": "20"})
        self.assertTrue(in_order(self.read("out.parquet")))

    def test_a_completion_whose_answer_is_lost_is_done(self):
        """The request is repeated, and the store says then that there is no such upload."""
        self.store.put("out.parquet", b"older")
        lost = []

        def lose(request):
            if request.method == "POST" and "uploadId" in request.query and not lost:
                lost.append(request)
                return AnswerLost()
            return None

        self.store.on_request = lose
        self.sort("in.parquet", "-o", "s3://bucket/out.parquet")
        self.assertTrue(lost and in_order(self.read("out.parquet")))
        self.assertEqual((self.store.uploads, self.notes()), ({}, []))

    def stopped(self, number):
        """A sort whose upload is open; it gets the signal while a part is sent."""
        waiting = []

        def hold(request):
            if "partNumber" in request.query:
                waiting.append(request)
                slow(5)

        self.store.on_request = hold
        with self.start("sort", "in.parquet", "-o", "s3://bucket/out.parquet", "--key", "name", "--compression", "none") as process:
            until = time.monotonic() + 60
            while not waiting and time.monotonic() < until:
                time.sleep(0.02)
            process.send_signal(number)
            process.communicate(timeout=30)
        self.store.on_request = lambda request: None
        self.assertNotIn("out.parquet", self.store.objects)
        return process.returncode

    def test_a_signal_leaves_nothing(self):
        self.assertNotEqual(self.stopped(signal.SIGINT), 0)
        self.assertEqual((self.store.uploads, self.notes()), ({}, []))

    def test_a_killed_command_is_named_and_the_next_one_aborts(self):
        self.store.uploads["of-others"] = ("out.parquet", {})
        self.assertEqual(self.stopped(signal.SIGKILL), -signal.SIGKILL)
        self.assertEqual(set(self.store.uploads), {"of-others", "upload-1"})
        [note] = self.notes()
        told = self.run_to(0, "recover", str(self.folder))
        self.assertIn(str(note), told)
        self.assertIn("an upload to s3://bucket/out.parquet that was not completed", told)
        self.assertIn("open are s3://bucket/out.parquet with the id upload-1", told)
        self.assertIn('"kind": "upload"', self.run_to(0, "recover", str(note), "--json"))
        with self.start("sort", "in.parquet", "-o", "s3://bucket/out.parquet", "--key", "name") as process:
            told = process.communicate(timeout=60)[1].decode()
        self.assertEqual(process.returncode, 0, told)
        self.assertIn("s3://bucket/out.parquet: an upload that a killed command left, aborted", told)
        self.assertEqual(set(self.store.uploads), {"of-others"})
        self.assertEqual(self.notes(), [])
        self.assertTrue(in_order(self.read("out.parquet")))

    def test_two_commands_do_not_write_one_object(self):
        waiting = []

        def hold(request):
            if "partNumber" in request.query and not waiting:
                waiting.append(request)
                slow(3)

        self.store.on_request = hold
        with self.start("sort", "in.parquet", "-o", "s3://bucket/out.parquet", "--key", "name") as process:
            while not waiting:
                time.sleep(0.02)
            told = self.run_to(2, "sort", "in.parquet", "-o", "s3://bucket/out.parquet", "--key", "name")
            self.assertIn("s3://bucket/out.parquet: another process is writing it now", told)
            process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)
        self.assertTrue(in_order(self.read("out.parquet")))


class Folders(Case):
    def setUp(self):
        super().setUp()
        many = table(60_000, wide=100).append_column("day", pyarrow.array([f"2026-01-{1 + at % 7:02}" for at in range(60_000)]))
        pyarrow.parquet.write_table(many, self.folder / "in.parquet")

    def test_a_folder_of_objects_appears_at_its_end(self):
        seen = []

        def look(request):
            is_completion = request.method == "POST" and "uploadId" in request.query
            seen.append((is_completion, len(self.store.objects)))

        self.store.on_request = look
        self.sort("in.parquet", "-o", "s3://bucket/out", "--partition-by", "day", "--file-size", "256K")
        self.sort("in.parquet", "-o", "local", "--partition-by", "day", "--file-size", "256K")
        files = {path.relative_to(self.folder / "local").as_posix(): path.read_bytes() for path in (self.folder / "local").rglob("*.parquet")}
        self.assertEqual(self.store.objects, {f"out/{name}": body for name, body in files.items()})
        self.assertGreater(len(files), 7)
        first = next(number for number, (is_completion, _) in enumerate(seen) if is_completion)
        self.assertTrue(all(count == 0 for _, count in seen[:first]))
        self.assertEqual((self.store.uploads, self.notes()), ({}, []))
        checked = self.run_to(0, "verify", "s3://bucket/out")
        self.assertEqual(checked, self.run_to(0, "verify", "local"))
        told = self.run_to(2, "sort", "in.parquet", "-o", "s3://bucket/out/", "--key", "name", "--file-size", "1M")
        self.assertIn("s3://bucket/out/: has objects already, and stores can't replace a folder in one step; move them away", told)
        self.assertEqual((self.store.uploads, self.notes()), ({}, []))

    def test_a_folder_that_fails_leaves_nothing(self):
        self.store.on_request = lambda request: Status(403) if "part-00002" in request.key and "partNumber" in request.query else None
        told = self.run_to(2, "sort", "in.parquet", "-o", "s3://bucket/out", "--key", "name", "--file-size", "256K")
        self.assertIn("s3://bucket/out/part-00002.parquet: the store refuses it", told)
        self.assertEqual((self.store.objects, self.store.uploads, self.notes()), ({}, {}, []))

    def test_a_folder_of_which_a_part_is_there_is_said(self):
        self.store.on_request = lambda request: (
            Status(403) if "part-00003" in request.key and request.method == "POST" and "uploadId" in request.query else None
        )
        told = self.run_to(2, "sort", "in.parquet", "-o", "s3://bucket/out", "--key", "name", "--file-size", "256K")
        self.assertRegex(told, r"s3://bucket/out/: \d+ of \d+ objects are there, and the others are not: s3://bucket/out/part-00003")
        self.assertIn(f"{len(self.store.objects)} of ", told)
        self.assertEqual((self.store.uploads, self.notes()), ({}, []))


@unittest.skipUnless(moto, "moto is missing; .ci/setup flight installs it")
class Moto(Case):
    """The S3 of moto, with the clients of others."""

    def setUp(self):
        super().setUp()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        words = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait, timeout=20)
        self.addCleanup(server.terminate)
        self.endpoint = f"http://127.0.0.1:{port}"
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.1)
        self.client = boto3.client("s3", endpoint_url=self.endpoint, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
        self.client.create_bucket(Bucket="bucket")
        self.here = {"AWS_ENDPOINT_URL": self.endpoint, "MERGANSER_RETRY_SECONDS": "20"}

    def test_what_others_write_is_sorted_and_read_by_them(self):
        for number in range(3):
            body = parquet(20_000, number, 300, row_group_size=7000)
            self.client.put_object(Bucket="bucket", Key=f"in/year=202{number}/a b.parquet", Body=body)
        self.sort("s3://bucket/in/year=*/*.parquet", "-o", "s3://bucket/out.parquet", "--memory", "64M", "--compression", "none", environment=self.here)
        read = pyarrow.parquet.read_table(io.BytesIO(self.client.get_object(Bucket="bucket", Key="out.parquet")["Body"].read()))
        self.assertTrue(in_order(read) and read.num_rows == 60_000)
        self.assertEqual(set(read.column("year").to_pylist()), {2020, 2021, 2022})
        self.assertNotIn("Uploads", self.client.list_multipart_uploads(Bucket="bucket"))
        before = self.run_to(0, "verify", "s3://bucket/in/", environment=self.here)
        self.assertEqual(before, self.run_to(0, "verify", "s3://bucket/out.parquet", environment=self.here))
        self.sort("s3://bucket/out.parquet", "-o", "s3://bucket/days", "--partition-by", "year", environment=self.here)
        listed = self.client.list_objects_v2(Bucket="bucket", Prefix="days/")["Contents"]
        self.assertEqual([found["Key"] for found in listed], [f"days/year=202{number}/part-00000.parquet" for number in range(3)])
        told = self.run_to(2, "sort", "s3://bucket/out.parquet", "-o", "s3://no-such-bucket/x.parquet", "--key", "name", environment=self.here)
        self.assertIn("s3://no-such-bucket/x.parquet: is not there (NoSuchBucket", told)


if __name__ == "__main__":
    unittest.main()
