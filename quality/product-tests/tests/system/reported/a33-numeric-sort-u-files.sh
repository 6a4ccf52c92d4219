#!/usr/bin/env bash
# -m -u over files with equal lines, -c -u, -C.
# Source: uutils words_unique and others
. "${0%/*}/prelude"

printf 'a\nb\n' >x
printf 'a\nc\n' >y
[ "$(merganser sort -mu x y | tr '\n' ' ')" = "a b c " ] || wrong "-mu"
printf 'a\na\n' >d
merganser sort -cu d 2>er
[ $? = 1 ] || wrong "-cu"
merganser sort -C d || wrong -C
merganser sort -Cu d
[ $? = 1 ] || wrong "-Cu"
right "$(cat er)"
