"""Hadoop with its own shuffle and with Merganser's, side by side on the same input.

`config` says what the daemons are told, `cluster` runs them, `workloads` knows the jobs, `history`
reads what a job did, `chart` draws it, `scenarios` says what is compared and claimed, and `run` is
the command. Only Python's standard library is used.
"""
