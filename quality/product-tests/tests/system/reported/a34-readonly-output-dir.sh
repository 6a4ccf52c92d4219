#!/usr/bin/env bash
# -o onto an existing writable file in a folder without write permission: written as GNU sort does, or left as it is.
# Source: users sort onto a file in a folder that they can't write
. "${0%/*}/prelude"

[ "$(id -u)" = 0 ] || skip "only root can become another user"
printf 'b\na\n' >in
mkdir d
cp in d/out
chmod 666 d/out in
chmod 555 d
chmod 755 "$place" "$place/bin" "$T"
cp --remove-destination "$(readlink -f "$place/bin/merganser")" "$place/bin/merganser"
chmod 755 "$place/bin/merganser"
setpriv --reuid=65534 --regid=65534 --clear-groups merganser sort in -o d/out 2>er
rc=$?
[ $rc = 0 ] && [ "$(cat d/out)" = "$(printf 'a\nb')" ] && right "written"
[ $rc = 2 ] && [ "$(wc -l <er)" = 1 ] && grep -q 'd/out' er && cmp -s in d/out && right "refused: $(cat er)"
wrong "rc $rc: $(cat er)"
