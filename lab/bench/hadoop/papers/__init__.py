"""What was measured on Hadoop, next to the figures of three papers.

    run.py, study.py, isc.py ── FILE.json ──► compare.py ── a comparison ──► Outcome ──► a table, JSON, SVG
                                                                ▲
                                                           published.py

`published` has the papers' figures with their sources. `active`, `ssd` and `isc` have the comparisons, by paper; `lab/bench/papers`
has the tables and charts that all comparisons share. Only Python's standard library is used.
"""
