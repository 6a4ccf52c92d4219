"""Pages name files that are there."""

import re
import subprocess
import unittest
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(([^)\s#]+)")
# A path in backquotes. Placeholders and lists in braces are left out.
NAMED = re.compile(r"`((?:core|near|hadoop|array|lab|quality|docs|python|packaging|\.ci)/[\w./-]+)`")
# Figures of their days, in the words of their days.
KEPT = "lab/bench/results/"
# Made by a build, or written as a page says, with words in capitals for what differs.
MADE = re.compile(r"/target/|[A-Z]{4}")


def there():
    """All files of the repository, and their folders."""
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    return set(files) | {str(folder) for file in files for folder in PurePosixPath(file).parents}


def faults(page, text, paths):
    """Links and paths of a page that lead nowhere. ARCHITECTURE.md leaves out the wing and src/."""
    for link in LINK.findall(text):
        target = (ROOT / page).parent / link
        if "://" not in link and str(target.resolve().relative_to(ROOT)) not in paths:
            yield f"{page}: {link}"
    for path in NAMED.findall(text) if page != "ARCHITECTURE.md" else []:
        # From the root, or from the folder of the page.
        places = (path.rstrip("/"), str(PurePosixPath(page).parent / path))
        if not paths & set(places) and not MADE.search(path):
            yield f"{page}: {path}"


class Pages(unittest.TestCase):
    def test_links_and_paths_lead_somewhere(self):
        paths = there()
        pages = sorted(path for path in paths if path.endswith(".md") and not path.startswith(KEPT))
        self.assertGreater(len(pages), 30)
        found = [fault for page in pages for fault in faults(page, (ROOT / page).read_text(encoding="utf-8"), paths)]
        self.assertEqual(found, [])

    def test_what_leads_nowhere_is_found(self):
        text = "[a](b.md), [c](../README.md#d), `core/sort/`, `core/absent.rs`, `lab/target/x`, `docs/DATE-machine`"
        found = list(faults("docs/page.md", text, {"README.md", "core/sort"}))
        self.assertEqual(found, ["docs/page.md: b.md", "docs/page.md: core/absent.rs"])


if __name__ == "__main__":
    unittest.main()
