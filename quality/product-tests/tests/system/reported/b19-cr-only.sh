#!/usr/bin/env bash
# CR as the only line end: one row or rows, but no silent loss.
# Source: old Mac exports
. "${0%/*}/prelude"

printf 'id,name\r2,b\r1,a\r' >in
merganser sort --format csv --header -k id in >g 2>er
rc=$?
[ $rc = 2 ] && right "refused: $(cat er)"
[ "$(tr '\r\n' '||' <g)" = "id,name|1,a|2,b|" ] && right
wrong "exit $rc, output $(tr '\r\n' 'R|' <g)"
