#!/usr/bin/env bash
# sort MISSING -o OUT must not touch OUT; -o OUT in a missing folder fails before the sort.
# Source: uutils tests (test_verifies_out_file and its like), GNU
. "${0%/*}/prelude"

printf 'old\n' >keep
merganser sort missing -o keep 2>er
[ $? = 2 ] && [ "$(cat keep)" = old ] && right "$(cat er)" || wrong "$(cat keep)"
