#!/usr/bin/env bash
# Order beyond 12, 16, 256 bytes of prefix.
# Source: DuckDB#17000, #9148 class: long strings with a common prefix
. "${0%/*}/prelude"

python3 -c "
import random
random.seed(5)
with open('in','w') as f:
    for i in range(40000):
        p='x'*random.choice([0,7,8,11,12,13,15,16,17,63,255,256,257,1000])
        f.write(p+random.choice(['','a','b','\x00','\x01','zz'])+str(random.randrange(100))+'\n')"
sort in >e
for m in 18M 200M; do
    merganser sort in --memory $m >g
    cmp -s e g || wrong "memory $m"
done
right
