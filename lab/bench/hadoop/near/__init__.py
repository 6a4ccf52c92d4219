"""Hadoop with map tasks on the node where the block is, and stock Hadoop: "In-Storage Computing for Hadoop MapReduce
Framework", repeated.

`pairs` lists the measurements and their order, `jobs` knows the programs, `inputs` makes what they read, `devices`
mounts throttled disks, `processes` watches the JVMs of tasks, `web` reads HDFS without a JVM, `pair` measures one pair,
`calls` runs the same SSDlet outside of Hadoop, and `lab/bench/hadoop/isc.py` is the command.
"""
