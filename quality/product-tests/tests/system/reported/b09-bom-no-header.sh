#!/usr/bin/env bash
# A byte order mark in front of the first row without a header: numeric key of that row.
# Source: common (Excel)
. "${0%/*}/prelude"

printf '\xef\xbb\xbf5,a\n3,b\n9,c\n' >in
merganser sort --format csv -k 1:n in | cut -d, -f2 | tr '\n' ' ' >g
[ "$(cat g)" = "b a c " ] && right || wrong "order $(cat g): the row with the mark has no number"
