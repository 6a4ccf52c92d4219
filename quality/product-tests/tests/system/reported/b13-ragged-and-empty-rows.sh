#!/usr/bin/env bash
# Rows with fewer columns than the key, blank lines.
# Source: csvkit, python csv
. "${0%/*}/prelude"

printf 'a,b,c\n1,2,3\n4\n\n5,1\n' >in
merganser sort --format csv --header -k c in >g 2>er
rc=$?
[ $rc = 0 ] && [ $(wc -l <g) = 5 ] && right "$(tr '\n' '|' <g)"
[ $rc = 2 ] && right "refused: $(cat er)"
wrong "rc $rc $(cat g)"
