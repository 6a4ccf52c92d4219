"""Which crate may know which."""

import unittest
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

LOADER = SourceFileLoader("arrows", str(Path(__file__).resolve().parent.parent / "arrows"))
arrows = module_from_spec(spec_from_loader("arrows", LOADER))
LOADER.exec_module(arrows)


def package(folder, *needed, name=None, kind="lib", of=None):
    return {
        "name": name or f"merganser-{folder.split('/')[1]}",
        "manifest_path": f"/checkout/{folder}/Cargo.toml",
        "targets": [{"kind": [kind]}],
        "dependencies": [{"name": f"merganser-{one}", "kind": of} for one in needed],
    }


class Arrows(unittest.TestCase):
    def test_a_wing_knows_the_core_and_the_core_no_wing(self):
        storage, map_ = package("core/storage"), package("near/map", "storage")
        self.assertEqual(arrows.faults_of([storage, map_]), [])
        self.assertEqual(
            arrows.faults_of([package("core/storage", "map"), map_]),
            ["storage (core) knows map (near)"],
        )

    def test_python_knows_tables_and_nobody_knows_python(self):
        tables, python = package("tables/table"), package("python/package", "table")
        self.assertEqual(arrows.faults_of([tables, python]), [])
        known = arrows.faults_of([package("tables/table", "package"), python])
        self.assertEqual(known, ["table (tables) knows package (python)"])

    def test_tests_may_know_all(self):
        self.assertEqual(arrows.faults_of([package("core/storage", "map", of="dev"), package("near/map")]), [])

    def test_targets_of_all_wings_are_known_by_none(self):
        map_, fuzz = package("near/map", name="merganser-map"), package("quality/fuzz", "map")
        self.assertEqual(arrows.faults_of([map_, fuzz]), [])
        testkit = package("quality/testkit", "fuzz")
        self.assertEqual(arrows.faults_of([map_, fuzz, testkit]), ["testkit knows the tests in fuzz"])

    def test_nobody_knows_a_program(self):
        program = package("lab/merganser-lab", name="merganser-lab", kind="bin")
        self.assertEqual(arrows.faults_of([package("lab/papers", "lab"), program]), ["papers knows the program merganser-lab"])

    def test_a_crate_of_no_wing_is_a_fault(self):
        self.assertEqual(arrows.faults_of([package("crates/new")]), ["new is in crates, which is no wing of .ci/arrows"])


if __name__ == "__main__":
    unittest.main()
