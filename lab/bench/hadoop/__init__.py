"""Hadoop with its own shuffle and with Merganser's, in turn on the same input.

`config` configures the daemons, `cluster` runs them, `workloads` knows the jobs, `history` reads the
history of a job, `chart` draws it, `scenarios` defines the comparisons and claims, and `run` is the
command. `papers` and `compare` hold results against the figures of papers. Only Python's standard library is used.
"""
