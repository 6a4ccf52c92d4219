#!/usr/bin/env bash
# sort -u must not ignore dashes.
# Source: uutils/coreutils#13202
. "${0%/*}/prelude"

printf 'a\na-\nb\nb-something\nc\nd-Xv1.txt\nd-X-v1.txt\n' >in
sort -u in >e
merganser sort -u in >g
same e g
