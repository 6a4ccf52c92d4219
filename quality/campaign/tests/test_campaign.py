"""The campaign finds the faults of a broken command, and none in a command that works."""

import atexit
import functools
import itertools
import os
import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import checksum
import data
import doors
import process
import rows
import run
import setup as surroundings
import shim
from case import LOST, REFUSED, SURVIVED, WRONG, Case, Lost, Outcome, Wrong
from kinds import KINDS, strangers, volumes
from scenarios import ALL, Scenario
from schedule import Schedule
from table import Tally

STAND_IN = Path(__file__).with_name("stand_in.py")


@functools.lru_cache(maxsize=1)
def library():
    """The shim, compiled once; its folder goes with the process."""
    held = tempfile.TemporaryDirectory()
    atexit.register(held.cleanup)
    return shim.build(held.name)


class WithStandIn(unittest.TestCase):
    """Cases against a command that is broken in a chosen way."""

    def make(self, broken="nothing"):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        folder = Path(held.name)
        program = folder / "merganser"
        program.write_text(STAND_IN.read_text().replace("#!/usr/bin/env python3", f"#!{sys.executable} -SE").replace(
            'BREAK = "nothing"', f'BREAK = "{broken}"'))  # fmt: skip
        program.chmod(0o755)
        with mock.patch("shim.build", lambda _folder: library()):
            return surroundings.Setup.make(program, folder, folder / "kept", 1)

    def outcome(self, broken, text):
        return run.attempt(text, self.make(broken))

    def test_a_command_that_works_survives_kills_at_every_call(self):
        setup = self.make()
        reached = 0
        for at in range(1, 8):
            with mock.patch("settle.choose", return_value="same"):
                outcome = run.attempt(f"call:sort.merge.1:at={at},round=1,seed=1", setup)
            reached += outcome.killed
            # Its own temporary name stays behind after a kill, until the next run takes it.
            self.assertEqual(outcome.verdict, SURVIVED, outcome.log)
        self.assertGreater(reached, 2)

    def test_an_input_that_is_removed_unread_is_lost(self):
        for kind in ("kill:consume.merge.1:size=small,n=1,seed=1", "odd:consume.merge.1:what=hard-link,n=1,seed=1"):
            with mock.patch("kinds.kills.undisturbed_s", return_value=0.5):
                outcome = self.outcome("unread", kind)
            self.assertEqual(outcome.verdict, LOST, outcome.log)
            self.assertTrue(Path(outcome.kept, "log").exists())

    def test_an_input_that_is_emptied_before_a_refusal_is_lost(self):
        outcome = self.outcome("refuse-late", "odd:consume.merge.1:what=long-name,n=1,seed=1")
        self.assertEqual(outcome.verdict, LOST, outcome.log)

    def test_half_a_result_with_status_0_is_wrong(self):
        outcome = self.outcome("torn", "fail:sort.merge.1:calls=w,at=1000,how=EIO,on=0,n=1,seed=1")
        self.assertEqual(outcome.verdict, WRONG, outcome.log)

    def test_panics_silence_debris_and_hangs_are_wrong(self):
        for broken, reason in {"panic": "panic", "silent": "0 sentences", "debris": "debris", "hang": "hangs"}.items():
            with mock.patch.object(process, "PATIENCE_S", 1), mock.patch("trial.PATIENCE_S", 1):
                outcome = self.outcome(broken, "fail:sort.merge.1:calls=w,at=1000,how=EIO,on=0,n=1,seed=1")
            self.assertEqual(outcome.verdict, WRONG, outcome.log)
            self.assertIn(reason, outcome.reason)

    def test_a_missing_input_that_is_refused_is_refused(self):
        outcome = self.outcome("nothing", "odd:consume.merge.1:what=missing,n=1,seed=1")
        self.assertEqual(outcome.verdict, REFUSED, outcome.log)


class Shim(unittest.TestCase):
    """The preload shim, on a program that is not merganser."""

    def run_shell(self, command, **what):
        with tempfile.TemporaryDirectory() as folder:
            environment = surroundings.environment() | shim.disturb(library(), folder, **what)
            words = [sys.executable, "-SE", "-c", command]
            done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
            return done, sorted(path.name for path in Path(folder).iterdir())

    def test_kills_in_place_of_the_call_or_after_it(self):
        script = "import os; os.mkdir('a'); os.mkdir('b'); os.mkdir('c')"
        done, names = self.run_shell(script, at=2, do="kill")
        self.assertEqual((done.returncode, names), (-9, ["a"]))
        done, names = self.run_shell(script, at=2, do="late")
        self.assertEqual((done.returncode, names), (-9, ["a", "b"]))

    def test_fails_once_or_from_then_on(self):
        script = "import os\nfor n in 'abc':\n  try: os.mkdir(n)\n  except OSError as e: print(e.errno)"
        done, names = self.run_shell(script, at=2, do="fail", error=5)
        self.assertEqual((done.stdout, names), ("5\n", ["a", "c"]))
        done, names = self.run_shell(script, at=2, do="fail", error=28, on=True)
        self.assertEqual((done.stdout, names), ("28\n28\n", ["a"]))

    def test_transfers_less(self):
        script = "import os; f = os.open('f', os.O_CREAT | os.O_RDWR); print(os.write(f, bytes(4096)))"
        done, _ = self.run_shell(script, classes="w", at=1, do="short")
        self.assertEqual(done.stdout, "2048\n")

    def test_other_folders_do_not_count(self):
        done, _ = self.run_shell("open('/dev/null', 'w').write('x')", classes="mywr", at=1, do="kill")
        self.assertEqual(done.returncode, 0)


class Parts(unittest.TestCase):
    def test_an_id_names_its_case(self):
        case = Case.of("call", "sort.merge.1", at=3, seed=9)
        self.assertEqual(Case.parse(str(case)), case)
        self.assertEqual(case.chance().random(), Case.parse(str(case)).chance().random())

    def test_scenarios_have_names(self):
        for scenario in ALL:
            self.assertEqual(Scenario.parse(str(scenario)), scenario)
            self.assertFalse(scenario.plan.consumes and not scenario.plan.reads_view and scenario.strategy == "distribute")

    def test_checksums(self):
        self.assertEqual(checksum.crc32c(b"123456789"), 0xE3069283)
        self.assertEqual(checksum.read_sealed(checksum.sealed({"a": [1]})), {"a": [1]})
        self.assertEqual(checksum.read_sealed(checksum.sealed({"a": [1]})), {"a": [1]})

    def test_tables_are_files_of_parquet_and_their_rows(self):
        table, in_order = rows.table(b"b\na\nb\n")
        self.assertEqual(in_order, b"n,part,text\n1,p/1,a\n0,p/0,b\n2,p/2,b\n")
        self.assertEqual(rows.folders(in_order), b"n,part,text\n0,p/0,b\n1,p/1,a\n2,p/2,b\n")
        self.assertEqual(rows.with_part_second(b"1,a,p/1\n"), b"1,p/1,a\n")
        self.assertTrue(table.startswith(b"PAR1") and table.endswith(b"PAR1"))
        self.assertEqual((rows.varint(1), rows.varint(300)), (b"\x01", b"\xac\x02"))
        self.assertEqual(rows.struct_of((1, "int", 2), (4, "text", b"x")), b"\x15\x04\x38\x01x\x00")

    def test_the_same_seed_gives_the_same_lines_and_other_numbers_other_ones(self):
        for number in range(data.KINDS):
            content, in_order = data.lines(1, number, "small")
            self.assertEqual(data.ordered(content), in_order)
            self.assertNotEqual(content, in_order)
        first, second = (set(data.lines(1, number, "small")[0].splitlines()) for number in (0, 1))
        self.assertFalse(first & second)

    def test_a_volume_may_hold_what_was_not_flushed_and_must_hold_what_was(self):
        for durable in (True, False):
            model = volumes.Model(durable)
            for seed in (7, 8):
                model.begin(3, seed)
                model.answered(3)
            pages = [volumes.content_of(seed) for seed in (0, 7, 8)]
            self.assertEqual(model.versions, {3: [8] if durable else [0, 7, 8]})
            for content in pages[:2] if durable else [volumes.content_of(9)]:
                self.assertRaises(Lost, model.found, 3, content)
            if not durable:
                model.found(3, pages[1])
                self.assertEqual(model.versions, {3: [7]}, "it does not change any more")
            model.begin(3, 9)
            model.flushed()
            self.assertRaises(Lost, model.found, 3, pages[2])
            model.found(3, volumes.content_of(9))

    def test_a_server_that_ends_badly_or_takes_too_much_is_found(self):
        def ended(code, err="", hung=False):
            return process.Ended(code, b"", err, hung, 1.0)

        strangers.check_end(ended(143, "merganser: ended, as it was asked to"))
        for bad in (ended(101), ended(143, "thread 'x' panicked at y"), ended(-9, hung=True), ended(-11)):
            self.assertRaises(Wrong, strangers.check_end, bad)
        me = mock.Mock(id=os.getpid())
        strangers.check_memory(me, mock.Mock(memory_bytes=1 << 40))
        with mock.patch.object(strangers, "OVER_MEMORY_BYTES", 1 << 20):
            self.assertRaises(Wrong, strangers.check_memory, me, mock.Mock(memory_bytes=0))

    def test_what_strangers_send_depends_on_the_seed_alone(self):
        for name, door in doors.DOORS.items():
            one = door.__new__(door)
            one.folder = Path("/local")
            pieces = [[one.hostile(random.Random(seed)) for seed in range(40)] for _ in range(2)]
            self.assertEqual(*pieces, name)
            self.assertGreater(len({b"".join(each) for each in pieces[0]}), 30, name)

    def test_kinds_take_turns_and_the_order_is_the_seeds(self):
        def order():
            kinds = {name: KINDS[name] for name in ("kill", "odd", "pair")}
            schedule = Schedule(kinds, None, 7, counts={"kill": 4, "odd": 2, "pair": 1})
            return [str(case) for case in itertools.takewhile(bool, iter(lambda: schedule.next(0), None))]

        self.assertEqual(order(), order())
        self.assertEqual(sorted(text.split(":")[0] for text in order()), ["kill"] * 4 + ["odd"] * 2 + ["pair"])

    def test_the_kills_end_it(self):
        schedule = Schedule({"odd": KINDS["odd"]}, None, 7, kills=10)
        self.assertIsNotNone(schedule.next(9))
        self.assertIsNone(schedule.next(10))

    def test_the_table_adds_up(self):
        tally = Tally()
        for verdict in (SURVIVED, SURVIVED, REFUSED, LOST, WRONG):
            tally.add(Outcome(Case.of("kill", "sort.merge.1", n=1), verdict, "reason 17", disturbed=2, killed=1))
        self.assertEqual(tally.rows(), [["kill", 5, 10, 1, 2, 1, 1], ["all", 5, 10, 1, 2, 1, 1]])
        self.assertEqual((tally.bad, tally.killed), (2, 5))
        self.assertEqual(len(tally.groups()), 2)


if __name__ == "__main__":
    unittest.main()
