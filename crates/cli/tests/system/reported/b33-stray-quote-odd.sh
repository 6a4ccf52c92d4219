#!/usr/bin/env bash
# One stray quote in the middle of a large file: an error that names its row, not only the last one.
# Source: Go encoding/csv (bare quote is an error), python csv (a letter)
. "${0%/*}/prelude"

(
    echo id,name
    for i in $(seq 9 -1 5); do echo "$i,plain"; done
    echo '4,3.5" disk'
    for i in 3 2 1; do echo "$i,x"; done
) >in
merganser sort --format csv --header -k id in >g 2>er
rc=$?
[ $rc = 2 ] && right "refused: $(cat er)"
wrong "exit $rc $(tr '\n' '|' <g)"
