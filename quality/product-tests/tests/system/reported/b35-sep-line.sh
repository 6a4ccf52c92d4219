#!/usr/bin/env bash
# A first line sep=; before the header.
# Source: Excel's sep=; first line
. "${0%/*}/prelude"

printf 'sep=;\nid;n\n2;a\n1;b\n' >in
merganser sort --format csv --header -k id -t ';' in >g 2>er
rc=$?
[ $rc = 2 ] && right "refused: $(cat er)"
right
