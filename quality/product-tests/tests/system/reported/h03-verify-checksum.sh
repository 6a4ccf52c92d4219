#!/usr/bin/env bash
# Verify prints what valsort would.
# Source: valsort: sum of CRC-32 of all records
. "${0%/*}/prelude"

merganser generate --format gensort --records 1000 -o g
merganser verify --format fixed:100 --key 0:10 g >v
c=$(python3 -c "
import zlib
d=open('g','rb').read(); print('%x'%sum(zlib.crc32(d[i:i+100]) for i in range(0,len(d),100)))")
grep -q "$c" v && right "$c" || wrong "$(cat v)"
