#!/usr/bin/env bash
# -T names a folder that is not there, and no temporary file is needed.
# Source: coreutils tests/sort/sort-merge.pl (nmerge-yes, batch-size)
. "${0%/*}/prelude"

printf 'b\na\n' >in
sort -T does/not/exist in >e || right "GNU sort refuses it, too"
merganser sort -T does/not/exist in >g 2>er || wrong "rc 2: $(cat er)"
same e g
