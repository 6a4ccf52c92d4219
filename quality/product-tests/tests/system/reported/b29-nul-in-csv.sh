#!/usr/bin/env bash
# NUL bytes in a csv row.
# Source: python csv before 3.11
. "${0%/*}/prelude"

printf 'b\0x,1\na\0y,2\n' >in
printf 'a\0y,2\nb\0x,1\n' >e
merganser sort --format csv -k1 in >g
same e g
