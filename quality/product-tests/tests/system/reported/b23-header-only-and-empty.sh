#!/usr/bin/env bash
# Empty file, header only, header without newline.
# Source: xsv, csvkit
. "${0%/*}/prelude"

: >in
merganser sort --format csv --header in >g 2>er || wrong "empty: rc $? $(cat er)"
[ -s g ] && wrong "empty gives bytes"
merganser sort --format csv --header -k a in >g 2>er
r=$?
printf 'a,b' >in
merganser sort --format csv --header -k a in >g 2>er2 || wrong "header only: $(cat er2)"
[ "$(cat g)" = "a,b" ] && right "empty with -k: rc $r $(cat er)" || wrong "$(cat g)"
