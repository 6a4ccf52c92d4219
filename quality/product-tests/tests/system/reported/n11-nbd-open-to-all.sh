#!/usr/bin/env bash
# A writable disk is not offered to other machines unless the user says so.
. "${0%/*}/prelude"

merganser array create v.json --data d0 --no-buffer --size 8M --quiet
timeout 1.5 merganser array serve v.json --nbd 0.0.0.0:0 >o1 2>&1
a=$?
timeout 1.5 merganser emulate --device null --memory-backed --size 8M --nbd 0.0.0.0:0 >o2 2>&1
b=$?
mkdir d
timeout 1.5 merganser serve --data d --listen 0.0.0.0:0 >/dev/null 2>&1
c=$?
w=$(cat o1 o2 | grep -ciE 'tls|token|insecure|other machines|whoever')
[ $a = 2 -a $b = 2 ] || [ $w != 0 ] && right "refused, or told"
wrong "array serve (exit $a) and emulate (exit $b; 124: serves) are writable at 0.0.0.0 without a word; serve --data exits $c"
