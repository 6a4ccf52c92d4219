"""Tests of the harness itself, with stand-ins for the programs that it runs."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
