#!/usr/bin/env bash
# Truncated anywhere: an error, no output file.
# Source: every reader
. "${0%/*}/prelude"

seq 100000 | zstd -qc >f
n=$(stat -c %s f)
for k in 4 5 8 12 100 $((n / 2)) $((n - 4)) $((n - 1)); do
    head -c $k f >in
    merganser sort in -o out 2>er
    rc=$?
    [ $rc = 2 ] || wrong "$k of $n bytes: exit $rc, $(head -c 20 out | od -c | head -1)"
    [ -e out ] && wrong "$k: out exists"
done
right "8 places"
