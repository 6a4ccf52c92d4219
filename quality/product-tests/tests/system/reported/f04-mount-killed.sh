#!/usr/bin/env bash
# Kill -9 of the mount, then mount again: works, or one sentence with the command.
# Source: s3fs#1228, fusera#164 (Transport endpoint is not connected)
. "${0%/*}/prelude"

[ -e /dev/fuse ] || skip "no FUSE here"
seq 3000 >in
merganser sort in --view v.view
mkdir mnt
merganser mount v.view mnt 2>log &
P=$!
for i in $(seq 50); do
    [ -e mnt/v ] && break
    sleep .1
done
kill -9 $P
wait $P 2>/dev/null
sleep .3
timeout 5 merganser mount v.view mnt 2>er
r=$?
umount -l mnt 2>/dev/null
[ $r = 2 ] && grep -qE 'umount|fusermount' er && right "$(head -c 200 er)"
[ $r = 124 ] && right "mounted again"
wrong "rc $r $(cat er)"
