#!/usr/bin/env bash
# CRLF file with blank first lines, options-like lines.
# Source: uutils/coreutils#9148
. "${0%/*}/prelude"

printf 'ZIM\r\n -z\r\nZone\r\n  --zone=<zone>\r\n\r\n' >in
sort in >e
merganser sort in >g
same e g
