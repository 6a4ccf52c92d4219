"""Medians, verdicts and tables."""

import unittest

from harness import report
from harness.plan import Claim, Outcome


class Cost:
    """Only what the claims below ask for."""

    def __init__(self, wall_s, device_read_bytes=0):
        self.wall_s = wall_s
        self.device_read_bytes = device_read_bytes


def rounds(*pairs):
    return [{"ours": Outcome({"sort": Cost(ours)}), "gnu": Outcome({"sort": Cost(gnu)})} for ours, gnu in pairs]


RATIO = Claim("GNU over ours", lambda of: of["gnu"].wall_s / of["ours"].wall_s, at_least=4)


class Judge(unittest.TestCase):
    def test_the_median_is_of_ratios_not_a_ratio_of_medians(self):
        # The disk was ten times as slow for both in the last round.
        judged = report.judge(RATIO, rounds((1, 5), (1, 4), (10, 40)))
        self.assertEqual(judged["figures"], [5, 4, 4])
        self.assertEqual(judged["median"], 4)
        self.assertTrue(judged["met"])

    def test_a_miss_is_a_miss(self):
        self.assertFalse(report.judge(RATIO, rounds((1, 3.9)))["met"])
        at_most = Claim("x", lambda of: of["ours"].wall_s, at_most=0.55)
        self.assertFalse(report.judge(at_most, rounds((0.56, 1)))["met"])
        self.assertTrue(report.judge(at_most, rounds((0.554, 1)))["met"], "as shown, 0.55")

    def test_a_peer_that_is_not_there_is_not_measured(self):
        judged = report.judge(RATIO, [{"ours": Outcome({"sort": Cost(1)})}])
        self.assertIsNone(judged["median"])
        self.assertIsNone(judged["met"])
        self.assertIn("not measured", report.claims_table([judged]))

    def test_bytes_that_could_not_be_counted_are_not_measured(self):
        claim = Claim("bytes", lambda of: of["ours"].device_read_bytes / 2, at_most=1)
        self.assertIsNone(report.judge(claim, [{"ours": Outcome({"sort": Cost(1, None)})}])["median"])


class Sums(unittest.TestCase):
    def test_seconds_add_up_over_steps(self):
        outcome = Outcome({"make": Cost(2), "read": Cost(3)})
        self.assertEqual(outcome.wall_s, 5)


class Tables(unittest.TestCase):
    def test_a_claim_is_a_row(self):
        table = report.claims_table([report.judge(RATIO, rounds((1, 5), (1, 4)))])
        self.assertEqual(table.splitlines()[2], "| GNU over ours | at least 4 | 4.50 (4.00 to 5.00) | yes |")

    def test_a_complaint_is_cut_to_its_point(self):
        self.assertEqual(report.gist("exit 1: x\nTraceback\nMemoryError: too much\nsee the guide"), "MemoryError: too much")
        self.assertEqual(report.gist("ended after 5 s: sleep 6"), "ended after 5 s: sleep 6")
