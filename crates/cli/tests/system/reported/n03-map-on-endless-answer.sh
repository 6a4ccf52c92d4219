#!/usr/bin/env bash
# `map --on` keeps within its memory while a node answers without end.
. "${0%/*}/prelude"

PY=$(python_with_pyarrow) || skip "no pyarrow"
cat >n.py <<'P'
import pyarrow.flight as fl
class E(fl.FlightServerBase):
    def do_action(self,c,a):
        def g():
            while True: yield fl.Result(b'x'*3000000)
        return g()
s=E('grpc+tcp://127.0.0.1:0'); print(s.port,flush=True); s.serve()
P
"$PY" n.py >port 2>/dev/null &
S=$!
while [ ! -s port ]; do sleep .1; done
(
    ulimit -v 4000000
    exec merganser map wordcount a --on 127.0.0.1:$(cat port) --memory 32M -o out
) 2>/dev/null &
C=$!
for i in 1 2 3 4 5; do
    sleep 1
    m=$(awk '/VmHWM/{print int($2/1024)}' /proc/$C/status 2>/dev/null)
    [ -n "$m" ] && hwm=$m
done
kill -9 $C $S 2>/dev/null
wait 2>/dev/null
[ -n "${hwm:-}" ] || wrong "the client was never seen"
[ "$hwm" -le 96 ] && right "at most $hwm MiB"
wrong "map --on with --memory 32M took $hwm MiB in 5 s from a node that answers without end"
