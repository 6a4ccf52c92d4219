#!/usr/bin/env bash
# A quote inside an unquoted field must not glue rows together silently.
# Source: Go encoding/csv LazyQuotes, xsv, python csv: 3.5" disk is common in exports
. "${0%/*}/prelude"

printf 'id,name\n3,3.5" disk\n1,plain\n2,5.25" disk\n0,last\n' >in
merganser sort --format csv --header -k id in >g 2>er
rc=$?
printf 'id,name\n0,last\n1,plain\n2,5.25" disk\n3,3.5" disk\n' >e
[ $rc = 2 ] && right "refused: $(cat er)"
same e g "exit $rc, python's csv reads 5 rows"
