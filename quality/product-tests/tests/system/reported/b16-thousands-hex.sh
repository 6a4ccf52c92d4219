#!/usr/bin/env bash
# 1,234 in quotes and 0x1F as numbers: documented (number ends) and never out of order among plain ones.
# Source: chrisbra/csv.vim#46, sorttable.js#5
. "${0%/*}/prelude"

printf '"1,234",a\n999,b\n"12,000",c\n0x1F,d\n5,e\n+7,f\n 6,g\n' >in
merganser sort --format csv -k 1:n in >g 2>er
cut -d, -f1 g >/dev/null
printf '%s' "$(tr '\n' ' ' <g)" >o
grep -q . er && right "said $(cat er)"
[ "$(grep -nE '^5,' g | cut -d: -f1)" -lt "$(grep -nE '^999' g | cut -d: -f1)" ] && right "$(cat o)" || wrong "$(cat o)"
