#!/usr/bin/env bash
# -g with hex, inf, nan, plus, exponent overflow.
# Source: GNU strtold
. "${0%/*}/prelude"

printf '0x10\n15\n17\n0x1p3\n1e400\n1e4000\n-inf\ninf\nInfinity\nnan\n+5\n 5\n5e-1\n1e-400\n1e-5000\n0\n-0\n.5\n5.\n.\ne5\n1e\n0x\n1e+\n1d3\n1_0\n0b1\n123456789012345678901\n123456789012345678902\n9007199254740993\n9007199254740992\n' >in
sort -g in >e
merganser sort -g in >g
cmp -s e g && right "all as 9.1"
diff e g >d
wrong "$(tr '\n' ' ' <d)"
