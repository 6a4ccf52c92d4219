#!/usr/bin/env bash
# `recover` prints no command that another user wrote.
. "${0%/*}/prelude"

chmod 755 .
seq 1 3000000 | shuf >big
for t in 0.2 0.3 0.4 0.6 0.8 1.2 2; do
    timeout -s KILL $t merganser sort --consume big -o out --memory 8M --quiet 2>/dev/null
    [ -f .big.merganser-consumed ] && break
done
[ -f .out.unfinished/sort-journal ] || wrong 'no sort was killed behind its claim'
seq 1 10 >s
merganser sort s --view v.view --quiet --memory 16M
python3 - <<'P'
import json
T=[]
for i in range(256):
    c=i
    for _ in range(8): c=(c>>1)^(0x82F63B78 if c&1 else 0)
    T.append(c)
def crc(b):
    c=0xffffffff
    for x in b: c=T[(c^x)&255]^(c>>8)
    return c^0xffffffff
j=json.loads(open('.out.unfinished/sort-journal','rb').read()[:-16]); j['command']['words']=['rm','-rf','/home/victim']; j['command']['folder']='/'
x=json.dumps(j,indent=2).encode()+b'\n'; open('v.view/sort-journal','wb').write(x+b'crc32c %08x\n'%crc(x))
P
chown -R 65534:65534 v.view 2>/dev/null || skip 'only root can give a file away'
l=$(merganser recover v.view)
case "$l" in *'rm -rf'*)
    wrong "recover of a view that user 65534 made prints: $l"
    ;;
esac
right "no command of another user is printed"
