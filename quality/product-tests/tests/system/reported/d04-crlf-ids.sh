#!/usr/bin/env bash
# Windows line ends: CR is neither in the id nor in the sequence or its length.
# Source: biopython, seqkit
. "${0%/*}/prelude"

printf '>b\r\nAC\r\nGT\r\n>a\r\nACGTA\r\n>a \r\nACG\r\n' >in
merganser sort --format fasta -k length -k id in >g
[ "$(grep '>' g | tr -d '\r\n')" = ">a >b>a" ] || wrong "length $(tr '\r\n' 'R|' <g)"
printf '>x\r\nAC\r\n' >c
printf '>y\nAC\n' >l
merganser sort --format fasta -k sequence -u c l >g
[ $(grep -c '>' g) = 1 ] || wrong "sequence -u sees CR"
printf '>a\r\nA\r\n>a\nC\n' >c
merganser sort --format fasta -k id -u c >g
[ $(grep -c '>' g) = 1 ] && right || wrong "id has the CR: $(tr '\r\n' 'R|' <g)"
