#!/usr/bin/env bash
# The image ends with the bytes of the view.
# Source: qemu-img convert of an export whose size is no multiple of 512
. "${0%/*}/prelude"

command -v qemu-img >/dev/null || skip "no qemu-img"
seq 1000 >in
sort in >exp
merganser sort in --view v.view
merganser export v.view --nbd "$T/s.sock" 2>log &
P=$!
for i in $(seq 50); do
    [ -S s.sock ] && break
    sleep .1
done
qemu-img convert -f raw -O raw "nbd+unix:///v?socket=$T/s.sock" q.raw
kill $P
cmp -n $(stat -c %s exp) q.raw exp && right || wrong
