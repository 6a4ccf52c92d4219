#!/usr/bin/env bash
# A skippable frame before, between, behind the frames; skippable only.
# Source: facebook/zstd#904, mimetype#621
. "${0%/*}/prelude"

python3 -c "
import struct,sys
open('s','wb').write(struct.pack('<II',0x184D2A50,5)+b'hello'); open('s2','wb').write(struct.pack('<II',0x184D2A5F,0))
open('big','wb').write(struct.pack('<II',0x184D2A53,3000000)+b'z'*3000000)"
printf 'b\n' | zstd -qc >x
printf 'a\n' | zstd -qc >y
cat s x big s2 y s >in.zst
merganser sort in.zst >g 2>er
[ "$(tr '\n' ' ' <g)" = "a b " ] || wrong "first: $(cat er) $(head -c 50 g | od -c | head -2)"
cat x s y >in.zst
[ "$(merganser sort in.zst | tr '\n' ' ')" = "a b " ] || wrong middle
cat s >in.zst
merganser sort in.zst >g 2>er || wrong "only: $(cat er)"
[ -s g ] && wrong "skippable only gives bytes"
right
