#!/usr/bin/env bash
# --files0-from with -, empty names, stdin both ways.
# Source: GNU
. "${0%/*}/prelude"

printf 'b\n' >x
printf 'a\n' >'y z'
[ "$(printf 'x\0y z\0' | merganser sort --files0-from=- | tr '\n' ' ')" = "a b " ] || wrong basic
[ "$(printf 'x\0y z' | merganser sort --files0-from=- | tr '\n' ' ')" = "a b " ] || wrong "no final NUL"
printf 'x\0\0' | merganser sort --files0-from=- >/dev/null 2>er
[ $? = 2 ] || wrong "empty name accepted"
printf -- '-\0' | merganser sort --files0-from=- >/dev/null 2>er2
[ $? = 2 ] || wrong "- inside accepted"
printf 'x\0' | merganser sort --files0-from=- x 2>er3 >/dev/null
[ $? = 2 ] || wrong "operand accepted"
right "$(cat er)"
