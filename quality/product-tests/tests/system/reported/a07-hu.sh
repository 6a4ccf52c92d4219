#!/usr/bin/env bash
# sort -hu keeps one line of each value (first of equals in input order).
# Source: coreutils/coreutils#23
. "${0%/*}/prelude"

printf '1K\n1024\n1k\n1M\n1000K\n1K\n2\n02\n' >in
sort -hu in >e
merganser sort -hu in >g
same e g
