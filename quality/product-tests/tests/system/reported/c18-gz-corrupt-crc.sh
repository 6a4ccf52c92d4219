#!/usr/bin/env bash
# A flipped bit in data and in the checksum.
# Source: every reader
. "${0%/*}/prelude"

seq 50000 | gzip >f
cp f in
printf '\xff' | dd of=in bs=1 seek=$(($(stat -c %s f) - 6)) conv=notrunc status=none
merganser sort in -o out 2>er
[ $? = 2 ] || wrong "crc: rc $?"
cp f in
printf '\x00\x00\x00' | dd of=in bs=1 seek=20000 conv=notrunc status=none
merganser sort in -o out 2>er
[ $? = 2 ] && [ ! -e out ] && right "$(cat er)" || wrong data
