#!/usr/bin/env bash
# A frame that needs a dictionary: an error that says so.
# Source: zstd -D
. "${0%/*}/prelude"

for i in $(seq 200); do echo "line $i of the samples with words" >s$i; done
zstd -q --train s* -o dict 2>/dev/null
zstd -qc -D dict s1 >in
merganser sort in >g 2>er
rc=$?
[ $rc = 2 ] && right "refused: $(cat er)"
wrong "exit $rc"
