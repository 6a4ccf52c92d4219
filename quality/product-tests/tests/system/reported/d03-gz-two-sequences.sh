#!/usr/bin/env bash
# sort by length of a compressed file: no sequence lost.
# Source: shenwei356/seqkit#52
. "${0%/*}/prelude"

for i in 5 1 7 3 2 6 4; do
    printf '>s%d\n' $i
    head -c $i /dev/zero | tr '\0' A
    echo
done | gzip >in.gz
merganser sort --format fasta -k length in.gz | grep -c '>' >n
[ "$(cat n)" = 7 ] && right || wrong "$(cat n)"
