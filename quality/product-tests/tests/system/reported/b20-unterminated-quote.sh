#!/usr/bin/env bash
# A quote that is never closed.
# Source: every csv reader
. "${0%/*}/prelude"

printf 'id,name\n2,"b\n1,a\n' >in
merganser sort --format csv --header -k id in >g 2>er
rc=$?
[ $rc = 2 ] && right "refused: $(cat er)"
wrong "exit $rc: $(tr '\n' '|' <g)"
