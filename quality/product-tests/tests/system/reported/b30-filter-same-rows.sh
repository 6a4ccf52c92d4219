#!/usr/bin/env bash
# Map filter and project on a file with a byte order mark, CRLF and quoted newlines.
# Source: dathere/qsv search
. "${0%/*}/prelude"

printf '\xef\xbb\xbfid,name,v\r\n2,"a\r\nb",10\r\n1,"x ""y""",9\r\n' >in
merganser map filter --header --where 'v >= 10' in >g 2>er || wrong "$(cat er)"
grep -q '^2,' g && ! grep -q '^1,' g || wrong "filter $(cat g)"
merganser map project --header --columns id,v in >g 2>er || wrong "project $(cat er)"
[ "$(tr -d '\r' <g | tail -1)" = "1,9" ] && right "$(tr '\r\n' 'R|' <g)" || wrong "$(tr '\r\n' 'R|' <g)"
