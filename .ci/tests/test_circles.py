"""Modules that import one another."""

import unittest
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

LOADER = SourceFileLoader("circles", str(Path(__file__).resolve().parent.parent / "circles"))
circles = module_from_spec(spec_from_loader("circles", LOADER))
LOADER.exec_module(circles)


def found(**texts):
    return circles.Crate({"" if name == "root" else name.replace("__", "::"): text for name, text in texts.items()}).circles()


class Circles(unittest.TestCase):
    def test_two_modules_that_import_one_another(self):
        self.assertEqual(found(root="mod a; mod b;", a="use super::b::B;", b="fn f() -> crate::a::A {}"), ["a b"])
        self.assertEqual(found(root="mod a; mod b;", a="use super::b::B;", b="struct B;"), [])

    def test_a_way_over_several_modules_and_a_re_export(self):
        root = "mod a; mod b; mod c; pub use c::C;"
        self.assertEqual(found(root=root, a="use crate::{b::B, x};", b="use crate::C;", c="use super::a;"), ["a b c"])

    def test_children(self):
        self.assertEqual(found(root="", a="mod b; use b::B;", a__b="use super::A;"), [])
        self.assertEqual(found(root="", a="use super::d;", a__b="use super::super::d::D;", d="use crate::a::b::B;"), ["a::b d"])

    def test_comments_and_tests_are_left_out(self):
        told = "// use crate::b::B;\n#[cfg(test)]\nmod tests { use crate::b::B; }"
        self.assertEqual(found(root="", a=told, b="use crate::a::A;"), [])


if __name__ == "__main__":
    unittest.main()
