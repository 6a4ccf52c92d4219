#!/usr/bin/env bash
# -o to things that are no regular files.
# Source: users write -o /dev/null, /dev/stdout, /dev/fd/N, a FIFO
. "${0%/*}/prelude"

printf 'b\na\n' >in
[ "$(merganser sort in -o /dev/stdout)" = "$(printf 'a\nb')" ] || wrong "/dev/stdout"
merganser sort in -o /dev/null || wrong "/dev/null"
[ -c /dev/null ] || wrong "/dev/null was replaced"
mkfifo p
(timeout 10 cat p >got) &
timeout 10 merganser sort in -o p || wrong "FIFO rc $?"
wait
[ "$(cat got)" = "$(printf 'a\nb')" ] || wrong FIFO
[ "$(merganser sort in -o /dev/fd/3 3>&1)" = "$(printf 'a\nb')" ] || wrong "/dev/fd/3"
right "four kinds"
