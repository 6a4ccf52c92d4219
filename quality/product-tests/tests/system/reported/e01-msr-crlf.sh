#!/usr/bin/env bash
# MSR csv with CRLF, upper and lower case types, blank last line.
# Source: SNIA MSR Cambridge traces, MQSim users
. "${0%/*}/prelude"

printf '128166372003061629,hm,1,Read,383496192,32768,113736\r\n128166372016382155,hm,1,write,3822206976,4096,1000\r\n\r\n' >t.csv
merganser simulate run --device msr --trace t.csv --wrap >o 2>er || wrong "$(cat er)"
grep -qE '^read +1 ' o && grep -qE '^write +1 ' o && right || wrong "$(head -8 o)"
