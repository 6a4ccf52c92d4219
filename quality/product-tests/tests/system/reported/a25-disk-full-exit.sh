#!/usr/bin/env bash
# Temp dir and output on a full file system: exit status not 0, no file.
# Source: samtools/samtools#470, #253
. "${0%/*}/prelude"

mkdir m
mount -t tmpfs -o size=3m tmpfs m 2>/dev/null || skip "no mount here"
python3 -c "
import random
random.seed(1)
with open('in','w') as f:
    for _ in range(500000): f.write('%032x\n'%random.getrandbits(128))"
merganser sort in -o m/out --memory 18M --force 2>er
r1=$?
l1=$(ls -A m)
merganser sort in -T m --memory 18M --force >out 2>er2
r2=$?
merganser sort in >m/out 2>er3
r3=$?
umount m
[ $r1 = 2 ] && [ $r2 = 2 ] && [ $r3 = 2 ] && [ -z "$l1" ] && right "2 2 2, nothing left: $(cat er2)"
wrong "$r1 $r2 $r3 [$l1]"
