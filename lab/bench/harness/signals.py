"""Signals that end a run in an orderly way."""

import signal


def end_orderly():
    """Makes Ctrl-C, SIGTERM and SIGHUP (a closed terminal) raise KeyboardInterrupt, so that a run removes its daemons,
    mounts, loop devices and control groups.

    A signal that is ignored stays so, as SIGHUP is under nohup; but a shell starts background jobs with SIGINT ignored.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number == signal.SIGINT or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)


def raise_if_interrupted(error):
    """Raises KeyboardInterrupt if it came before this error, which the cleaning up raised then."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            raise error
        error = error.__context__
