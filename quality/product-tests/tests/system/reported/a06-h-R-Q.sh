#!/usr/bin/env bash
# -h knows R and Q (GNU 9.2 and later).
# Source: uutils/coreutils#7182
. "${0%/*}/prelude"

printf '1Q\n1R\n1Y\n1K\n-1Q\n0\n' >in
printf -- '-1Q\n0\n1K\n1Y\n1R\n1Q\n' >e
merganser sort -h in >g
same e g
