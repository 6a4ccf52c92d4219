#!/usr/bin/env bash
# A module of 120 KB with 30,000 functions keeps within --memory and 64 MiB.
. "${0%/*}/prelude"

N=30000
echo a >small
python3 - $N <<'P'
import sys,json
n=int(sys.argv[1])
def leb(x):
    o=b''
    while True:
        b=x&127; x>>=7; o+=bytes([b|(128 if x else 0)])
        if not x: return o
sec=lambda i,b: bytes([i])+leb(len(b))+b
nm=lambda s: leb(len(s))+s
m=b'\0asm\1\0\0\0'+sec(1,b'\4\x60\0\1\x7f\x60\1\x7f\1\x7f\x60\2\x7f\x7f\1\x7f\x60\0\0')+sec(3,leb(n+3)+b'\0\1\2'+b'\3'*n)+sec(5,b'\1\0\2')+sec(7,b'\4'+nm(b'memory')+b'\2\0'+nm(b'mgs_abi')+b'\0\0'+nm(b'mgs_buffer')+b'\0\1'+nm(b'mgs_chunk')+b'\0\2')
m+=sec(10,leb(n+3)+b'\4\0\x41\1\x0b'+b'\6\0\x41\x80\x80\4\x0b'+b'\4\0\x41\0\x0b'+b'\2\0\x0b'*n)
j=json.dumps({"abi":1,"name":"x","input":"lines","memory":1048576,"output":{"keyed":{"key":"text","value":"i64","combine":"sum"}}}).encode()
m+=sec(0,nm(b'merganser.ssdlet')+j); open('g.wasm','wb').write(m)
P
s=$(date +%s)
python3 - >peak <<'P'
import resource,subprocess
subprocess.run(["timeout","100","merganser","map","g.wasm","small","--memory","64M","--threads","1"],stdout=open("out","wb"),stderr=open("err","wb"))
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
P
t=$(($(date +%s) - s))
m=$(($(cat peak) / 1024))
z=$(stat -c %s g.wasm)
e=$(head -1 err | head -c 100)
[ "$m" -le 128 ] && right "$m MiB, $t s ($e)"
wrong "a module of $z bytes with $N functions took $m MiB with --memory 64M (128 MiB allowed), $t s"
