#!/usr/bin/env bash
# Output to /dev/full is an error.
# Source: common
. "${0%/*}/prelude"

printf 'b\na\n' | merganser sort >/dev/full 2>er
[ $? = 2 ] && right "$(cat er)" || wrong "rc $?"
