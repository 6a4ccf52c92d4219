#!/usr/bin/env bash
# Csv numeric key with NaN, empty and text: the numbers must stay in order.
# Source: BurntSushi/xsv#271
. "${0%/*}/prelude"

printf '3\n5\n2\n2.01\nNaN\n2\n0\n\nnot float\n20\n' >in
merganser sort --format csv -k 1:n in >g || wrong "rc $?"
grep -E '^[0-9]' g >n
sort -g n >e
cmp -s n e && right "$(tr '\n' ' ' <g)" || wrong "$(tr '\n' ' ' <g)"
