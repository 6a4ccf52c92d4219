#!/usr/bin/env bash
# FASTA that begins with blank lines.
# Source: makeblastdb, seqkit, samtools faidx take blank lines before the first >
. "${0%/*}/prelude"

printf '\n\n>b\nAC\n>a\nGT\n' >in
merganser sort --format fasta -k id in >g 2>er || wrong "rc 2: $(cat er)"
[ "$(grep '>' g | tr '\n' ' ')" = ">a >b " ] && right || wrong "$(cat g)"
