#!/usr/bin/env bash
# Xz, bzip2, lz4: not silently sorted as text.
# Source: users expect these from zcat-like tools (samtools, duckdb, miller --prepipe)
. "${0%/*}/prelude"

t=
for c in xz bzip2 "lz4 -q"; do
    printf 'b\na\n' | $c -c >in
    merganser sort in >g 2>er
    rc=$?
    if [ $rc = 0 ] && [ "$(tr '\n' ' ' <g)" != 'a b ' ]; then t="$t ${c%% *}"; fi
done
[ -z "$t" ] && right "all said" || wrong "sorted as text, exit 0, no word:$t"
