#!/usr/bin/env bash
# One column with a header; the first row must not get lost.
# Source: medialab/xan#615
. "${0%/*}/prelude"

printf 'NO\n1\n2\n3\n' >in
merganser sort --format csv --header in >g
cmp -s in g || wrong "$(cat g)"
merganser sort --format csv --header in in >g
printf 'NO\n1\n1\n2\n2\n3\n3\n' >e
same e g "two inputs with headers"
