#!/usr/bin/env bash
# --key of a name that occurs twice: an error or the first, said.
# Source: csv files with equal names
. "${0%/*}/prelude"

printf 'a,b,a\n1,2,3\n' >in
merganser sort --format csv --header -k a in >g 2>er
rc=$?
[ $rc = 2 ] && grep -qi "a" er && right "$(cat er)"
[ $rc = 0 ] && wrong "takes one silently: $(cat er)"
