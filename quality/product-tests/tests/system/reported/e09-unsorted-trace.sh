#!/usr/bin/env bash
# Arrivals that go backwards.
# Source: traces of several CPUs are out of order
. "${0%/*}/prelude"

printf '128166372003061629,hm,1,Read,0,4096,1\n128166372003000000,hm,1,Write,4096,4096,1\n128166372004000000,hm,1,Read,0,4096,1\n' >t.csv
merganser simulate run --device msr --filled --trace t.csv >o 2>er
rc=$?
[ $rc = 0 ] && grep -qE '^read +2 ' o && right "$(grep -i 'order\|back' o er | head -2)"
[ $rc = 2 ] && right "refused $(cat er)"
wrong "rc $rc"
