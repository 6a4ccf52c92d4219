#!/usr/bin/env bash
# Map filter on a file with two stray quotes must not lose rows silently.
# Source: the data of b17
. "${0%/*}/prelude"

printf 'id,name\n3,3.5" disk\n1,plain\n2,5.25" disk\n0,last\n' >in
merganser map filter --header --where 'id = 1' in >g 2>er
rc=$?
[ $rc = 2 ] && right "refused: $(cat er)"
[ "$(tail -1 g)" = "1,plain" ] && right
wrong "exit $rc, the row of id 1 is not in the result: $(tr '\n' '|' <g)"
