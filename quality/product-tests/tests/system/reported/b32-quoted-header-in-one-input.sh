#!/usr/bin/env bash
# Two inputs with the same columns, one quotes its header.
# Source: csvstack users
. "${0%/*}/prelude"

printf '"id","n"\n2,b\n' >x
printf 'id,n\n1,a\n' >y
merganser sort --format csv --header -k id x y >g 2>er || wrong "refused: $(cat er)"
right
