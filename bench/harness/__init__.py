"""Runs programs side by side and counts what they cost: seconds, memory, and bytes on the device.

`measure` runs one job and counts; `scenarios` says which jobs are compared and what is claimed of
them; `peers` knows the command lines; `data` makes the inputs; `report` keeps the results. Only
Python's standard library is used.
"""
