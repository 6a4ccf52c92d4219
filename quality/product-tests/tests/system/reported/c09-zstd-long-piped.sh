#!/usr/bin/env bash
# Zstd --long=27 of 200 MB through stdin.
# Source: the same from a pipe with a real 128 MiB window
. "${0%/*}/prelude"

head -c 150000000 /dev/zero | tr '\0' 'a' | fold -w 99 | zstd -qc -1 --long=27 >in.zst
cat in.zst | merganser sort --memory 400M >g 2>er
rc=$?
n=$(zstd -dc --long=27 in.zst | wc -c)
[ $rc = 0 ] && [ $(stat -c %s g) -ge $n ] && right "$n bytes"
[ $rc = 2 ] && right "refused: $(head -c 200 er)"
wrong "rc $rc"
