#!/usr/bin/env bash
# Map filter id = a number of 19 digits must not match other ids.
# Source: jqlang/jq#217, #1399, databricks/spark-csv#292, apache/pinot#16021: 64-bit ids rounded to doubles
. "${0%/*}/prelude"

printf 'id,n\n1234567890123456789,a\n1234567890123456788,b\n2,d\n' >in
merganser map filter --header --where 'id = 1234567890123456789' in >g 2>er
rc=$?
[ $rc = 2 ] && right "refused: $(cat er)"
[ "$(tail -n +2 g | tr '\n' ' ')" = "1234567890123456789,a " ] && right
wrong "exit $rc: $(tail -n +2 g | tr '\n' ' ')"
