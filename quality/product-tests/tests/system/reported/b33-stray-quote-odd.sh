#!/usr/bin/env bash
# One stray quote in the middle of a large file: an error that names its row, not only the last one, or the rows
# in which the quote is a letter.
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
(
    echo id,name
    for i in 1 2 3; do echo "$i,x"; done
    echo '4,3.5" disk'
    for i in 5 6 7 8 9; do echo "$i,plain"; done
) >e
same e g "exit $rc, python's csv reads 9 rows"
