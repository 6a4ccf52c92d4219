"""Experiments of papers with whole processes, and the tables and charts that all comparisons with papers share.

    reproduce.py ── lab.Lab ──► an experiment ──► outcome.Outcome ──► a table, JSON, SVG
                                      ▲
                                 published.py

`triton`, `mcsd` and `ppblast` have a paper each: its figures in `published`, and a file for each experiment. `lab` measures jobs
with the harness; `published` is a figure of a paper, `outcome` has the tables, `svg` the charts. `hadoop.papers` uses these, too.
Only Python's standard library is used.
"""
