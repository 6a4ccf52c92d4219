"""Runs programs side by side and counts what they cost: seconds, memory, and bytes on the device.

`measure` runs one job and counts; `scenarios` defines which jobs are compared and the claims on their
costs; `tools` knows the command lines; `data` makes the inputs; `report` keeps the results. Only
Python's standard library is used.
"""
