#!/usr/bin/env bash
# UTF-16 input: at least no silent nonsense.
# Source: csvkit, xsv: Excel's "Unicode text" is UTF-16
. "${0%/*}/prelude"

printf 'id\tname\n2\tb\n1\ta\n' | iconv -t UTF-16 >in
merganser sort in >g 2>er
rc=$?
iconv -f UTF-16 g >/dev/null 2>&1 && right "readable"
[ -s er ] || [ $rc = 2 ] && right "said: $(cat er)"
wrong "exit $rc without a word, and the output is no UTF-16 any more"
