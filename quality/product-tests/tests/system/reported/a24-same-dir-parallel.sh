#!/usr/bin/env bash
# Six sorts at once in one folder with the same temp dir and leftovers.
# Source: samtools/samtools#1784, #1739
. "${0%/*}/prelude"

python3 -c "
import random
for k in range(6):
    random.seed(k)
    with open('i%d'%k,'w') as f:
        for _ in range(60000): f.write('%032x payload %d\n'%(random.getrandbits(128),k))"
for k in 0 1 2 3 4 5; do merganser sort i$k -o o$k --memory 18M -T . 2>er$k & done
wait
for k in 0 1 2 3 4 5; do sort i$k | cmp -s - o$k || wrong "o$k: $(cat er$k)"; done
left=$(ls -A | grep -v '^[ieo]')
[ -n "$left" ] && wrong "left: $left"
right "six right, nothing left"
