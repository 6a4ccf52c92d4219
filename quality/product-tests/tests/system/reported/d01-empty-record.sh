#!/usr/bin/env bash
# A record with neither id nor sequence must be counted and kept.
# Source: shenwei356/seqkit#550
. "${0%/*}/prelude"

printf '>b\nACGT\n>\n\n>a\nGG\n' >in
merganser sort --format fasta -k id in >g 2>er || wrong "$(cat er)"
[ $(grep -c '^>' g) = 3 ] && [ "$(head -1 g)" = ">" ] && right || wrong "$(tr '\n' '|' <g)"
