#!/usr/bin/env bash
# -t, -k3n where later fields follow.
# Source: landley/toybox#60
. "${0%/*}/prelude"

printf '1,2,3,4\n2,3,4,1\n4,1,2,3\n3,4,1,2\n' >in
sort -t, -k 3n in >e
merganser sort -t, -k 3n in >g
same e g
