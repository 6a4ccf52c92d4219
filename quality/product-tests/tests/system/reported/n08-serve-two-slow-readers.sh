#!/usr/bin/env bash
# Two clients that begin to read a view and stop do not keep others out.
. "${0%/*}/prelude"

PY=$(python_with_pyarrow) || skip "no pyarrow"
mkdir data
merganser generate --format lines --records 500000 -o b --quiet
merganser sort b --view data/b.view --quiet --memory 16M
seq 1 100 >s
merganser sort s --view data/s.view --quiet
merganser serve --data data --listen 127.0.0.1:0 2>err &
P=$!
for i in $(seq 50); do
    port=$(grep -o '127.0.0.1:[0-9]*' err | head -1 | cut -d: -f2)
    [ -n "$port" ] && break
    sleep .1
done
timeout 60 "$PY" - $port 2>/dev/null <<'P'
import sys,os,pyarrow.flight as fl
u='grpc+tcp://127.0.0.1:'+sys.argv[1]; o=lambda t:fl.FlightCallOptions(timeout=t); keep=[]
n=fl.connect(u).do_get(fl.Ticket(b'{"view":"s.view"}'),o(10)).read_all().num_rows
for i in range(2):
    c=fl.connect(u); r=c.do_get(fl.Ticket(b'{"view":"b.view"}'),o(300)); r.read_chunk(); keep+=[c,r]
try: m=fl.connect(u).do_get(fl.Ticket(b'{"view":"s.view"}'),o(20)).read_all().num_rows; print('right: served beside two slow readers'); rc=0
except Exception as e: print(f'wrong: beside two slow readers, a view of {n} lines was not served in 20 s: {type(e).__name__}'); rc=1
sys.stdout.flush(); os._exit(rc)
P
rc=$?
kill $P
wait $P 2>/dev/null
exit $rc
