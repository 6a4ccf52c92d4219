#!/usr/bin/env bash
# -o over an existing file keeps its permissions.
# Source: GNU sort's -o keeps mode and owner
. "${0%/*}/prelude"

printf 'b\na\n' >in
chmod 640 in
merganser sort in -o in
[ "$(stat -c %a in)" = 640 ] && right 640 || wrong "mode $(stat -c %a in)"
