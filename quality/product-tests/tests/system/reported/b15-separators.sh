#!/usr/bin/env bash
# Tab, pipe, semicolon, ctrl-A (Hive), \t spelled.
# Source: qsv --delimiter
. "${0%/*}/prelude"

t=
for s in ';' '|' $'\t' $'\x01' '\t'; do
    c="$s"
    [ "$s" = '\t' ] && c=$'\t'
    printf "b${c//%/%%}1\na${c}2\n" >in
    merganser sort --format csv -k 2:n:r --csv-separator "$s" in >g 2>er || t="$t [$(printf %q "$s"): $(cat er)]"
    merganser sort --format csv -k 2:n:r -t "$s" in >g 2>er || t="$t [-t $(printf %q "$s"): $(cat er)]"
    [ "$(head -c1 g)" = a ] || t="$t [$(printf %q "$s") order]"
done
[ -z "$t" ] && right "5 separators" || wrong "$t"
