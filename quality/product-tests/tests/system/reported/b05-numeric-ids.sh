#!/usr/bin/env bash
# Text order and number order of ids of different lengths.
# Source: dathere/qsv#2391
. "${0%/*}/prelude"

printf 'pnm,tc_id,pc_id\n405,139280,9730000630075\n131,139282862,9730065908379\n252,139282,9730000630075\n138,139282863,973\n' >in
merganser sort --format csv --header -k tc_id:n in | cut -d, -f2 | tr '\n' ' ' >g
[ "$(cat g)" = "tc_id 139280 139282 139282862 139282863 " ] || wrong "$(cat g)"
merganser sort --format csv --header -k tc_id in | cut -d, -f2 | tr '\n' ' ' >g
[ "$(cat g)" = "tc_id 139280 139282 139282862 139282863 " ] && right || wrong "$(cat g)"
