#!/usr/bin/env bash
# Lines with ; before the first > and between.
# Source: Pearson FASTA
. "${0%/*}/prelude"

printf '; a comment\n>b\nAC\n>a\nGT\n' >in
merganser sort --format fasta in >g 2>er
rc=$?
[ $rc = 2 ] && right "refused: $(cat er)"
[ $rc = 0 ] && right "kept"
wrong $rc
