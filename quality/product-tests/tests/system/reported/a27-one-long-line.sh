#!/usr/bin/env bash
# One line of 300 MB, default memory.
# Source: uutils/coreutils#8583
. "${0%/*}/prelude"

head -c 300000000 /dev/zero | tr '\0' A >in
merganser sort in -o out 2>er || wrong "rc $? $(cat er)"
[ $(stat -c %s out) = 300000001 ] && right || wrong "size $(stat -c %s out)"
