#!/usr/bin/env bash
# 300 files with ulimit -n 20.
# Source: samtools#319, coreutils sort-merge-fdlimit
. "${0%/*}/prelude"

for i in $(seq 300); do printf '%s\n' $((i * 7919 % 1000)) $((i * 31 % 977)) >f$i; done
for f in f*; do sort -n $f -o $f; done
cat f* | sort -n >e
(
    ulimit -n 20
    merganser sort -n f* >g 2>er
)
cmp -s e g || wrong "sort: $(cat er)"
(
    ulimit -n 20
    merganser sort -m -n f* >g 2>er
)
same e g "-m $(cat er)"
