#!/usr/bin/env bash
# sort -m of long lines must not cut them.
# Source: uutils/coreutils#12471, coreutils/coreutils#270
. "${0%/*}/prelude"

python3 -c 'for c in "abc": print(c*32000)' >in
merganser sort -m in >g
cmp -s in g || wrong "cut"
python3 -c 'for c in "abc": print(c*3200000)' >in
merganser sort -m in in >g
sort -m in in >e
same e g
