#!/usr/bin/env bash
# Open sessions of `match` count against --memory.
. "${0%/*}/prelude"

PY=$(python_with_pyarrow) || skip "no pyarrow"
mkdir data
merganser serve --data data --listen 127.0.0.1:0 --memory 64M 2>err &
P=$!
for i in $(seq 50); do
    port=$(grep -o '127.0.0.1:[0-9]*' err | head -1 | cut -d: -f2)
    [ -n "$port" ] && break
    sleep .1
done
timeout 60 "$PY" - $port 2>/dev/null <<'P'
import sys,os,json,pyarrow.flight as fl
c=fl.connect('grpc+tcp://127.0.0.1:'+sys.argv[1])
for i in range(16): next(iter(c.do_action(fl.Action('open',json.dumps({'ssdlet':'match','args':{'keys':[os.urandom(120).hex() for _ in range(4000)]}}).encode()))))
print('opened',flush=True); os._exit(0)
P
m=$(awk '/VmHWM/{print int($2/1024)}' /proc/$P/status)
kill $P
wait $P 2>/dev/null
[ $m -le 128 ] && right "$m MiB"
wrong "16 open sessions of match: $m MiB with --memory 64M (128 MiB allowed)"
