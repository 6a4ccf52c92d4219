#!/usr/bin/env bash
# Two gzip members, and an empty one between and at the end.
# Source: rust flate2#61, htslib#742, rustar-aligner#217
. "${0%/*}/prelude"

(
    printf 'b\n' | gzip
    printf '' | gzip
    printf 'a\n' | gzip
    printf '' | gzip
) >in.gz
[ "$(merganser sort in.gz | tr '\n' ' ')" = "a b " ] && right || wrong "$(merganser sort in.gz 2>&1)"
