"""What was measured on Hadoop, next to the figures of three papers.

    run.py, study.py, isc.py ── FILE.json ──► compare.py ── a comparison ──► outcome.Outcome ──► a table, JSON, SVG
                                                                ▲
                                                           published.py

`published` has the papers' figures with their sources, `outcome` the tables, `svg` the charts. `active`, `ssd` and `isc` have the
comparisons, by paper. Only Python's standard library is used.
"""
