#!/usr/bin/env bash
# Byte order mark before the first >.
# Source: files from Windows editors
. "${0%/*}/prelude"

printf '\xef\xbb\xbf>b\nAC\n>a\nGT\n' >in
merganser sort --format fasta -k id in >g 2>er
rc=$?
[ $rc = 2 ] && right "refused: $(cat er)"
[ $(grep -c '>' g) = 2 ] && right kept
wrong "rc $rc"
