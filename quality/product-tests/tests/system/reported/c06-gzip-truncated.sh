#!/usr/bin/env bash
# Truncated anywhere: an error, no output file.
# Source: every reader
. "${0%/*}/prelude"

seq 100000 | gzip >f.gz
n=$(stat -c %s f.gz)
for k in 1 3 5 10 15 100 $((n / 2)) $((n - 9)) $((n - 8)) $((n - 4)) $((n - 1)); do
    head -c $k f.gz >in.gz
    merganser sort in.gz -o out 2>er
    rc=$?
    if [ $k -le 1 ]; then
        [ $rc = 0 ] || wrong "$k bytes: rc $rc"
        rm -f out
    else
        [ $rc = 2 ] || wrong "$k of $n bytes: exit $rc"
        [ -e out ] && wrong "$k: out exists"
    fi
done
right "11 places"
