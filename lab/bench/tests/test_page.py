"""The report's page in a real browser, narrow and wide, light and dark.

Skipped where there is no browser (`apt-get install chromium-headless-shell`) or where Merganser is not built.
With MERGANSER_SCREENSHOTS=FOLDER the pictures are kept there, to be looked at.
"""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path
from xml.etree import ElementTree

from harness import browser

REPOSITORY = Path(__file__).resolve().parents[3]
MERGANSER = Path(os.environ.get("MERGANSER") or REPOSITORY / "target/release/merganser")
# A name that would run, if names were not text.
EVIL = "<script>document.title='evil'<!--&amp;'\">.txt"

# Elements that stick out of the page to the right.
STICKING_OUT = """
[...document.querySelectorAll('body *')]
  .filter(e => e.getBoundingClientRect().right > innerWidth + 1)
  .map(e => e.outerHTML.slice(0, 100))
"""
# Drawings that are too small to see.
UNSEEN = "[...document.querySelectorAll('svg')].filter(e => e.getBoundingClientRect().width < 200).length"
# Drawings without a description for screen readers.
WORDLESS = "[...document.querySelectorAll('svg')].filter(e => !e.getAttribute('aria-label')).length"


def sort(folder, report, *more):
    """Sorts some lines in several runs, with a report of it."""
    command = [MERGANSER, "sort", EVIL, "-o", "sorted", "--memory", "16M", "--report", report, "--quiet", *more]
    subprocess.run(command, cwd=folder, check=True, timeout=60)


@unittest.skipUnless(MERGANSER.exists(), f"{MERGANSER}: not built")
class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.path = Path(cls.folder.name)
        make = [MERGANSER, "generate", "--format", "lines", "--records", "600000", "-o", EVIL]
        subprocess.run(make, cwd=cls.path, check=True, timeout=60)
        sort(cls.path, "report.html", "--price", "900", "--power", "45", "--endurance", "600TB")

    def test_it_is_xml_and_names_are_text(self):
        text = (self.path / "report.html").read_text()
        root = ElementTree.fromstring(text)
        self.assertEqual([e.tag for e in root.iter() if e.tag == "script"], [])
        self.assertIn(EVIL, [e.text for e in root.iter("bdi")])

    def test_the_data_says_the_same(self):
        sort(self.path, "report.json")
        data = json.loads((self.path / "report.json").read_text())
        self.assertEqual((data["inputs"], data["output"], data["records"]), ([EVIL], "sorted", 600000))
        self.assertGreater(data["sort"]["runs"], 1)
        bins = len(data["activity"]["reads"]["bytes"])
        for worker in data["activity"]["workers"]:
            spent = [sum(states) for states in zip(*worker["state_ns"].values())]
            self.assertEqual(len(spent), bins)
            self.assertTrue(all(ns <= data["activity"]["bin_ns"] for ns in spent), worker["name"])
        # The recorder saw all requests to the storages: the input and every run.
        self.assertEqual(sum(data["activity"]["reads"]["bytes"]) > data["input_bytes"], True)
        self.assertEqual(sum(data["activity"]["writes"]["bytes"]) > data["output_bytes"], True)

    @unittest.skipUnless(browser.find(), "no browser: apt-get install chromium-headless-shell")
    def test_it_fits_a_phone_and_a_desk_and_asks_for_nothing(self):
        keep = os.environ.get("MERGANSER_SCREENSHOTS")
        page = self.path / "report.html"
        with browser.Browser(browser.find()) as shown:
            for width, scheme in [(360, "light"), (360, "dark"), (1280, "light"), (1280, "dark")]:
                with self.subTest(width=width, scheme=scheme):
                    shown.open(page, width, scheme)
                    self.assertEqual(shown.value("document.title"), "merganser sort: sorted")
                    self.assertLessEqual(shown.value("document.documentElement.scrollWidth"), width)
                    self.assertEqual(shown.value(STICKING_OUT), [])
                    self.assertEqual((shown.value(UNSEEN), shown.value(WORDLESS)), (0, 0))
                    self.assertEqual(shown.value("document.scripts.length"), 0)
                    self.assertEqual(shown.requests(), [page.as_uri()])
                    self.assertEqual(shown.complaints(), [])
                    if keep:
                        shown.screenshot(Path(keep) / f"report-{width}-{scheme}.png")


if __name__ == "__main__":
    unittest.main()
