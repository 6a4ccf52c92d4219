#!/usr/bin/env bash
# An emulation starts again right after it was killed.
. "${0%/*}/prelude"

N=20
mkdir m
python3 - merganser $N <<'P'
import sys,subprocess,os,random,time,mmap
B,N=sys.argv[1],int(sys.argv[2]); bad=0; buf=mmap.mmap(-1,1<<20); buf.write(b'x'*(1<<20))
for i in range(N):
    p=subprocess.Popen([B,'emulate','--device','null','--file','d.img','--size','16M','--mount','m'],stdout=subprocess.DEVNULL,stderr=subprocess.PIPE)
    t=time.time()
    while not os.path.ismount('m') and p.poll() is None and time.time()-t<5: time.sleep(.005)
    if p.poll() is not None:
        bad+=b'is used by another' in p.stderr.read(); time.sleep(.3); continue
    k=subprocess.Popen(['sh','-c',f'sleep {random.random()*.15:.3f}; kill -9 {p.pid}'])
    try:
        f=os.open('m/disk',os.O_RDWR|os.O_DIRECT)
        while True: os.pwritev(f,[buf],random.randrange(16)<<20)
    except OSError: pass
    k.wait(); p.wait()
    try: os.close(f)
    except OSError: pass
    subprocess.run(['umount','-l','m'],stderr=subprocess.DEVNULL)
print(f'wrong: {bad} of {N} starts right after kill -9 were refused: is used by another emulation' if bad else f'right: {N} starts after kill -9'); sys.exit(bad>0)
P
rc=$?
umount -l m 2>/dev/null
exit $rc
