#!/usr/bin/env bash
# Match --keys with a byte order mark before the first text.
# Source: the same from Notepad
. "${0%/*}/prelude"

printf '\xef\xbb\xbffoo\r\n' >k
printf 'a foo b\n' >t
[ $(merganser map match --keys k t | wc -l) = 1 ] && right || wrong "no match, exit 0, no word"
