#!/usr/bin/env bash
# Map histogram --width 0.1: 0.3 and 0.7 belong to the ranges that begin there.
# Source: numpy/numpy#20610, biolab/orange3#5411, astrofrog/fast-histogram#63
. "${0%/*}/prelude"

printf '0.1\n0.2\n0.3\n0.7\n' >in
merganser map histogram --width 0.1 in >g 2>er || wrong "$(cat er)"
[ "$(tr '\t\n' ' /' <g)" = "0.1 1/0.2 1/0.3 1/0.7 1/" ] && right || wrong "$(tr '\t\n' ' /' <g)"
