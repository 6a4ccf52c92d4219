#!/usr/bin/env bash
# Map histogram of 19-digit ids must keep different ids apart.
# Source: nao1215/filesql#379, jq#217, jq#1399 (ids past 2^53 become one)
. "${0%/*}/prelude"

printf '1234567890123456789\n1234567890123456788\n2\n' >in
merganser map histogram in >g 2>er || wrong "rc 2 $(cat er)"
[ $(wc -l <g) = 3 ] && right "$(tr '\t\n' ' /' <g)" || wrong "$(tr '\t\n' ' /' <g): two ids became one"
