#!/usr/bin/env bash
# Backslash-escaped quotes: a row must not be glued to the next silently.
# Source: MySQL, Hive exports
. "${0%/*}/prelude"

printf 'id,name\n2,"a \\"b\\" c"\n1,"x \\" y"\n0,z\n' >in
merganser sort --format csv --header -k id in >g 2>er
rc=$?
[ $rc = 2 ] && right "refused: $(cat er)"
[ "$(tail -n +2 g | cut -c1 | tr '\n' ' ')" = "0 1 2 " ] && right
wrong "exit $rc: $(tr '\n' '|' <g)"
