#!/usr/bin/env bash
# Yes piped to sort: memory stays bounded (100 MB in 32 MiB).
# Source: uutils/coreutils#11174
. "${0%/*}/prelude"

yes | head -c 100000000 | /usr/bin/env python3 -c "
import subprocess,resource,sys,os
p=subprocess.Popen([sys.argv[1],'sort','--memory','32M'],stdout=subprocess.PIPE)
n=0
while True:
    b=p.stdout.read(1<<20)
    if not b: break
    n+=len(b)
p.wait(); r=resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss//1024
print(p.returncode,n,r)" merganser >o
read rc n r <o
[ $rc = 0 ] && [ $n = 100000000 ] && [ $r -lt 97 ] && right "peak $r MiB" || wrong "rc $rc bytes $n peak $r"
