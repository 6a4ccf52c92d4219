"""Signals that end a run."""

import signal
import unittest

from harness.signals import end_orderly, raise_if_interrupted

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class EndOrderly(unittest.TestCase):
    def setUp(self):
        for number in NUMBERS:
            self.addCleanup(signal.signal, number, signal.getsignal(number))

    def test_each_signal_interrupts(self):
        for number in NUMBERS:
            signal.signal(number, signal.SIG_DFL)
        end_orderly()
        for number in NUMBERS:
            with self.subTest(number=number), self.assertRaises(KeyboardInterrupt):
                signal.raise_signal(number)

    def test_nohup_holds_and_a_job_in_the_background_can_be_interrupted(self):
        for number in NUMBERS:
            signal.signal(number, signal.SIG_IGN)
        end_orderly()
        handlers = [signal.getsignal(number) for number in NUMBERS]
        self.assertEqual(handlers, [signal.default_int_handler, signal.SIG_IGN, signal.SIG_IGN])


class RaiseIfInterrupted(unittest.TestCase):
    def test_an_error_of_the_cleaning_up_hides_no_interrupt(self):
        try:
            try:
                raise KeyboardInterrupt
            finally:
                raise OSError("still mounted")
        except OSError as error:
            with self.assertRaises(KeyboardInterrupt):
                raise_if_interrupted(error)

    def test_other_errors_pass(self):
        try:
            try:
                raise ValueError
            finally:
                raise OSError("full")
        except OSError as error:
            raise_if_interrupted(error)
