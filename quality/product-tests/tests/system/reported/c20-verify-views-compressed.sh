#!/usr/bin/env bash
# -c, verify, -m, map on compressed files.
# Source: users of sort -c file.gz
. "${0%/*}/prelude"

seq 1000 | sort | gzip >a.gz
merganser sort -c a.gz || wrong -c
merganser verify a.gz >v 2>er || wrong "verify $(cat er)"
grep -q '1000' v || wrong "$(cat v)"
merganser sort -m a.gz a.gz | wc -l >n
[ "$(cat n)" = 2000 ] && right || wrong "-m $(cat n)"
