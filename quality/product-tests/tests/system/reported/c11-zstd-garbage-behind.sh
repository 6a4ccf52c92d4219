#!/usr/bin/env bash
# Text behind the last frame.
# Source: zstd -d refuses it
. "${0%/*}/prelude"

(
    printf 'b\na\n' | zstd -qc
    printf 'garbage'
) >in
merganser sort in >g 2>er
rc=$?
[ $rc = 2 ] && right "refused: $(cat er)"
wrong "exit $rc: $(tr '\n' '|' <g)"
