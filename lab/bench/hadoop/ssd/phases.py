"""What the disk did in each phase of a job.

    submitted ── maps ──► last map ends ── shuffle ──► last map output fetched ── reduce ──► finished

A report of `merganser emulate` counts requests, bytes, and requests that continue the one before, in bins of equal
time. A bin belongs to the phase that has its middle.
"""

PHASES = ("maps", "shuffle", "reduce")


def spans(told, job_ended_ms):
    """Start and end of each phase, in milliseconds of the system's clock, from a job's `history.History`."""
    begin = told.submitted_ms

    def last(letter, phases):
        return max((bar.end_ms for a in told.attempts if a.name[0] == letter for bar in a.bars if bar.phase in phases), default=0)

    maps = begin + last("m", ("map", "spill"))
    # Reducers fetch while maps run: what counts as shuffle is the rest.
    fetched = max(maps, begin + last("r", ("shuffle",)))
    return {"maps": (begin, maps), "shuffle": (maps, fetched), "reduce": (fetched, max(fetched, job_ended_ms))}


def split(report, started_ms, all_spans, slower=1):
    """Requests, bytes and requests in order of reads and writes, for each phase. Spans have the time of the system's
    clock; the report, and the seconds that are returned, have the time of the disk, which is `slower` times as slow."""
    activity = report["activity"]
    bin_ms = activity["bin_ns"] / 1e6 * slower
    found = {}
    for phase, (start, end) in all_spans.items():
        bins = [
            index
            for index in range(len(activity["reads"]["bytes"]))
            if start <= started_ms + (index + 0.5) * bin_ms < end
        ]
        found[phase] = {"seconds": (end - start) / 1000 / slower}
        for kind in ("reads", "writes"):
            flow = activity[kind]
            found[phase][kind] = {
                "requests": sum(flow["requests_per_bin"][index] for index in bins),
                "in_order": sum(flow["in_order_per_bin"][index] for index in bins),
                "bytes": sum(flow["bytes"][index] for index in bins),
            }
    return found
