"""Stock Hadoop on emulated disks: "A Case for Flash Memory SSD in Hadoop Applications", repeated.

`cells` lists the measurements and their order, `jobs` knows their programs, `image` makes file systems with inputs,
`memory` keeps the page cache as small as the paper's, `cell` measures one cell,
`phases` splits a report by the job's phases, `rounds` keeps what was measured, and `lab/bench/hadoop/study.py` is the command.
`harness.emulated` emulates a disk under an image.
"""
