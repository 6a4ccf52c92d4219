#!/usr/bin/env bash
# -o LINK writes the file that the link names.
# Source: GNU sort's -o through a link
. "${0%/*}/prelude"

echo old >real
chmod 600 real
ln -s real lnk
printf 'b\na\n' >in
merganser sort in -o lnk || wrong "rc $?"
[ -L lnk ] || wrong "the link was replaced by a file"
[ "$(cat real)" = "$(printf 'a\nb')" ] && right "written through the link" || wrong "real has $(cat real)"
