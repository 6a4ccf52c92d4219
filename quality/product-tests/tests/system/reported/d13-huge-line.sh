#!/usr/bin/env bash
# A record of one line of 120 MB, several, with --memory 256M.
# Source: genome assemblies: one line per chromosome
. "${0%/*}/prelude"

python3 - <<'P'
import random
random.seed(1)
with open('in','w') as f:
    for i in range(3): f.write('>c%d\n'%(9-i)); f.write('ACGT'*12000000+'\n')
P
merganser sort --format fasta -k id --memory 256M in -o g 2>er
rc=$?
[ $rc = 2 ] && right "refused: $(head -c 200 er)"
[ "$(grep '>' g | tr '\n' ' ')" = ">c7 >c8 >c9 " ] && right || wrong "rc $rc"
