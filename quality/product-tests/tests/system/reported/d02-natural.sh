#!/usr/bin/env bash
# Natural order of chromosome names.
# Source: shenwei356/seqkit#39, assemblyqc#76
. "${0%/*}/prelude"

printf '>3\nA\n>1\nA\n>Y\nA\n>x\nA\n>Mt\nA\n>11\nA\n>2\nA\n' >in
merganser sort --format fasta -k id:V in | grep '>' | tr -d '>' | tr '\n' ' ' >g
[ "$(cat g)" = "1 2 3 11 Mt Y x " ] && right "$(cat g)"
wrong "$(cat g)"
